#include "emulated_gpu/nccl/ranks.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gptbench::emulation {
namespace {

// Longest life of a rank, which ends hanging ones; nothing in these tests takes as long.
constexpr unsigned longest_s = 60;

std::string contents(int file) {
  std::string text;
  char buffer[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t got; (got = read(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

}  // namespace

std::vector<Ended> run_ranks(int ranks, const std::function<void(int)>& body) {
  std::vector<int> files;
  std::vector<pid_t> processes;
  setenv("GPTBENCH_EMULATED_GPUS", std::to_string(ranks).c_str(), 1);
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    files.push_back(memfd_create("stderr", 0));
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    alarm(longest_s);
    dup2(files.back(), STDERR_FILENO);
    cudaSetDevice(rank);
    body(rank);
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  std::vector<Ended> ended(processes.size());
  for (size_t rank = 0; rank < processes.size(); ++rank) {
    int status = 0;
    waitpid(processes[rank], &status, 0);
    ended[rank].status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended[rank].said = contents(files[rank]);
    close(files[rank]);
  }
  return ended;
}

void expect_all_pass(const std::vector<Ended>& ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    EXPECT_EQ(ranks[rank].status, 0) << "rank " << rank << " said: " << ranks[rank].said;
}

ncclUniqueId new_id() {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  return id;
}

ncclComm_t joining(const ncclUniqueId& id, int ranks, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, ranks, id, rank, &config), ncclInProgress);
  return comm;
}

ncclResult_t settle(ncclComm_t comm) {
  for (;;) {
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    if (state != ncclInProgress) return state;
    sched_yield();
  }
}

ncclComm_t joined(const ncclUniqueId& id, int ranks, int rank) {
  ncclComm_t comm = joining(id, ranks, rank);
  EXPECT_EQ(settle(comm), ncclSuccess);
  return comm;
}

void leave(ncclComm_t comm) {
  EXPECT_EQ(ncclCommFinalize(comm), ncclInProgress);
  EXPECT_EQ(settle(comm), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace gptbench::emulation
