// What a ncclComm_t of the emulated library points to.
#pragma once

#include <nccl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulated_gpu/nccl/board.h"
#include "emulated_gpu/nccl/faults.h"
#include "emulated_gpu/nccl/operation.h"

// A communicator that does not block does what it is asked for while ncclCommGetAsyncError is
// called: who does not ask until it says ncclSuccess has enqueued nothing. The first message from
// a rank to another connects them, and is enqueued when both have been asked for it.
//
// It lives as the library's does (init.cc of NCCL 2.28): ncclCommAbort tells what runs to end and
// then waits for it, and for the graphs that hold operations; so does ncclCommFinalize in the
// background, which here also waits until all ranks have called it.
struct ncclComm : std::enable_shared_from_this<ncclComm> {
 public:
  using Request = gptbench::emulation::Request;

  // Takes the rank's seat; throws std::runtime_error.
  ncclComm(const ncclUniqueId& id, int ranks, int rank, bool blocking);

  // What ncclCommGetAsyncError says.
  ncclResult_t state();
  ncclResult_t start(const char* call, const Request& request, cudaStream_t stream);
  ncclResult_t finalize();
  ncclResult_t destroy();
  void abort();
  // Ends the process where what was asked last has not come to pass.
  void expect_settled(const char* call);
  bool blocks() const { return blocking_; }
  // Until what was asked last has come to pass.
  ncclResult_t wait();
  // The communicator is of no use any more.
  void fail(ncclResult_t error, const std::string& message);

  // For operations, on the GPU's thread.
  const int ranks, rank;
  const gptbench::emulation::Fault fault;
  std::unique_ptr<gptbench::emulation::Board> board;
  std::atomic<int64_t> operations_alive{0};
  std::atomic<bool> aborted{false};
  const gptbench::emulation::Operation* running = nullptr;
  uint64_t operations_begun = 0, collectives_begun = 0;
  std::vector<uint64_t> sends_begun, receives_begun;  // by peer

 private:
  enum class Life { joining, ready, finalizing, finalized };

  ncclResult_t state_locked();
  ncclResult_t join_locked();
  ncclResult_t finalize_locked();
  bool connect(const gptbench::emulation::Note& message) const;
  ncclResult_t fail_where_a_peer_is_gone();
  void expect_settled_locked(const char* call) const;

  const bool blocking_;
  std::mutex mutex_;
  Life life_ = Life::joining;
  int polls_left_ = 2;           // that find what was asked last unfinished
  std::function<void()> asked_;  // is done at the poll that follows
  gptbench::emulation::Note asked_note_;
  uint64_t operations_asked_ = 0;
  std::weak_ptr<gptbench::emulation::Operation> latest_;
  std::atomic<ncclResult_t> error_{ncclSuccess};
};

namespace gptbench::emulation {

// What ncclGetLastError says, of the last failure in this process.
void set_last_error(const std::string& message);
std::string last_error();

}  // namespace gptbench::emulation
