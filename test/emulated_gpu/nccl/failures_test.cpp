// The emulated NCCL: peers that fail, and wrong uses.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "emulated_gpu/nccl/ranks.h"

namespace gptbench::emulation {
namespace {

constexpr int aborted = 128 + SIGABRT;

// An all-reduce of `count` numbers on `data`.
ncclResult_t sum(ncclComm_t comm, const GpuArray<float>& data, size_t count, cudaStream_t stream) {
  const ncclResult_t begun =
      ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum, comm, stream);
  return begun == ncclInProgress ? settle(comm) : begun;
}

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

// Asks until there is an error.
ncclResult_t error_of(ncclComm_t comm) {
  for (;;) {
    const ncclResult_t state = state_of(comm);
    if (state != ncclSuccess && state != ncclInProgress) return state;
    sched_yield();
  }
}

struct Fault {
  explicit Fault(const char* text) { setenv("GPTBENCH_EMULATED_NCCL_FAULT", text, 1); }
  ~Fault() { unsetenv("GPTBENCH_EMULATED_NCCL_FAULT"); }
};

// What a rank of these tests has.
struct Rank {
  Rank(const ncclUniqueId& id, int own) : rank(own), comm(joined(id, 2, own)) {}

  const int rank;
  const ncclComm_t comm;
  const Stream stream, signals;
  const GpuArray<float> data{{1.0f, 2.0f, 3.0f}}, signal{{1.0f}};
};

// Runs two ranks of which one at least ends with `message`; the other does so too, or is told that
// its peer is gone.
void expect_misuse(const std::string& message, const std::function<void(const Rank&)>& body) {
  const ncclUniqueId id = new_id();
  const std::vector<Ended> ended = run_ranks(2, [&](int own) {
    const Rank rank(id, own);
    body(rank);
    error_of(rank.comm);
    ncclCommAbort(rank.comm);
  });
  bool said = false;
  for (const Ended& rank : ended)
    said = said || (rank.status == aborted && rank.said.find(message) != std::string::npos);
  EXPECT_TRUE(said) << ended[0].said << ended[1].said;
}

// Returns when both ranks have called it. (No array of its own: cudaFree waits for all streams.)
void meet(ncclComm_t comm, const Rank& rank) {
  EXPECT_EQ(sum(comm, rank.signal, 1, rank.signals), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(rank.signals), cudaSuccess);
}

TEST(EmulatedNcclFailures, RanksThatShareAGpuAreRefused) {
  const ncclUniqueId id = new_id();
  expect_all_pass(run_ranks(2, [&](int rank) {
    cudaSetDevice(0);
    ncclComm_t comm = joining(id, 2, rank);
    EXPECT_EQ(settle(comm), ncclInvalidUsage);
    EXPECT_NE(std::string(ncclGetLastError(comm)).find("Duplicate GPU"), std::string::npos);
    ncclCommAbort(comm);
  }));
}

TEST(EmulatedNcclFailures, ARankThatDiesIsNoticed) {
  const ncclUniqueId id = new_id(), other = new_id();
  const std::vector<Ended> ended = run_ranks(2, [&](int own) {
    const Rank rank(id, own);
    ncclComm_t baton = joined(other, 2, own);
    if (own == 0) {
      EXPECT_EQ(sum(rank.comm, rank.data, 1, rank.stream), ncclSuccess);
    }
    meet(baton, rank);
    if (own == 1) raise(SIGKILL);
    EXPECT_EQ(error_of(rank.comm), ncclRemoteError);
    EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady);
    ncclCommAbort(rank.comm);
    EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
  });
  EXPECT_EQ(ended[0].status, 0) << ended[0].said;
  EXPECT_EQ(ended[1].status, 128 + SIGKILL);
}

TEST(EmulatedNcclFailures, AnAbortIsNoticed) {
  const ncclUniqueId id = new_id(), other = new_id();
  expect_all_pass(run_ranks(2, [&](int own) {
    const Rank rank(id, own);
    ncclComm_t baton = joined(other, 2, own);
    if (own == 0) {
      EXPECT_EQ(sum(rank.comm, rank.data, 1, rank.stream), ncclSuccess);
    }
    meet(baton, rank);
    if (own == 0) {
      EXPECT_EQ(error_of(rank.comm), ncclRemoteError);
      EXPECT_EQ(sum(rank.comm, rank.data, 1, rank.stream), ncclRemoteError);
      EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady);
    }
    ncclCommAbort(rank.comm);
    EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
    leave(baton);
  }));
}

TEST(EmulatedNcclFailures, FaultsThatTestsAskFor) {
  const ncclUniqueId id = new_id();
  const Fault fault("error:1:2");
  expect_all_pass(run_ranks(2, [&](int own) {
    const Rank rank(id, own);
    meet(rank.comm, rank);
    meet(rank.comm, rank);
    // The fault strikes in the stream, so that the call may return before it or behind it.
    const ncclResult_t asked = sum(rank.comm, rank.data, 1, rank.stream);
    EXPECT_TRUE(asked == ncclSuccess || asked == ncclRemoteError) << asked;
    EXPECT_EQ(error_of(rank.comm), ncclRemoteError);  // of rank 0, when rank 1 has aborted
    ncclCommAbort(rank.comm);
    EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
  }));
}

TEST(EmulatedNcclFailures, APeerThatNeverJoins) {
  const ncclUniqueId id = new_id();
  const Fault fault("absent:1");
  expect_all_pass(run_ranks(2, [&](int rank) {
    ncclComm_t comm = joining(id, 2, rank);
    for (int k = 0; k < 1000 && rank == 0; ++k) EXPECT_EQ(state_of(comm), ncclInProgress);
    ncclCommAbort(comm);
  }));
}

// What NCCL does since 2.26: a communicator is not left before the graphs that use it are gone.
TEST(EmulatedNcclFailures, ACommunicatorIsLeftWhenNoGraphHoldsIt) {
  const ncclUniqueId id = new_id();
  expect_all_pass(run_ranks(2, [&](int own) {
    const Rank rank(id, own);
    cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeRelaxed);
    EXPECT_EQ(sum(rank.comm, rank.data, 3, rank.stream), ncclSuccess);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(rank.stream, &graph), cudaSuccess);
    EXPECT_EQ(ncclCommFinalize(rank.comm), ncclInProgress);
    for (int k = 0; k < 1000; ++k) EXPECT_EQ(state_of(rank.comm), ncclInProgress);
    cudaGraphDestroy(graph);
    EXPECT_EQ(settle(rank.comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(rank.comm), ncclSuccess);
  }));
}

// By a first message in each direction.
void connect(const Rank& rank) {
  for (const int from : {0, 1}) {
    if (rank.rank == from)
      ncclSend(rank.data.data(), 1, ncclFloat32, 1 - from, rank.comm, rank.stream);
    else
      ncclRecv(rank.data.data(), 1, ncclFloat32, from, rank.comm, rank.stream);
    settle(rank.comm);
  }
}

TEST(EmulatedNcclFailures, OperationsThatDisagree) {
  expect_misuse("in all_reduce number 0 of 2 f32 (sum)", [](const Rank& rank) {
    sum(rank.comm, rank.data, rank.rank == 0 ? 2 : 1, rank.stream);
  });
  expect_misuse("wait for each other", [](const Rank& rank) {
    connect(rank);
    ncclSend(rank.data.data(), 2, ncclFloat32, 1 - rank.rank, rank.comm, rank.stream);
    settle(rank.comm);
  });
  expect_misuse("wait for each other", [](const Rank& rank) {
    connect(rank);
    if (rank.rank == 0) sum(rank.comm, rank.data, 2, rank.stream);
    ncclRecv(rank.data.data(), 2, ncclFloat32, 1 - rank.rank, rank.comm, rank.stream);
    settle(rank.comm);
  });
  expect_misuse("in send to rank 1 number 0 of 1 f32", [](const Rank& rank) {
    if (rank.rank == 0)
      ncclSend(rank.data.data(), 1, ncclFloat32, 1, rank.comm, rank.stream);
    else
      ncclRecv(rank.data.data(), 2, ncclFloat32, 0, rank.comm, rank.stream);
    settle(rank.comm);
  });
}

TEST(EmulatedNcclFailures, CallsThatTheLibraryDoesNotAllow) {
  expect_misuse("last operation is not enqueued", [](const Rank& rank) {
    for (int k = 0; k < 2; ++k)
      ncclAllReduce(rank.data.data(), rank.data.data(), 1, ncclFloat32, ncclSum, rank.comm,
                    rank.stream);
  });
  expect_misuse("is not 8 bytes of device memory", [](const Rank& rank) {
    std::vector<float> host(2);
    ncclAllReduce(host.data(), host.data(), 2, ncclFloat32, ncclSum, rank.comm, rank.stream);
  });
  expect_misuse("overlap and are not in place", [](const Rank& rank) {
    ncclAllReduce(rank.data.data(), rank.data.data() + 1, 2, ncclFloat32, ncclSum, rank.comm,
                  rank.stream);
  });
  expect_misuse("after ncclCommFinalize", [](const Rank& rank) {
    ncclCommFinalize(rank.comm);
    sum(rank.comm, rank.data, 1, rank.stream);
  });
  expect_misuse("on a communicator after ncclCommDestroy", [](const Rank& rank) {
    leave(rank.comm);
    settle(rank.comm);
  });
}

}  // namespace
}  // namespace gptbench::emulation
