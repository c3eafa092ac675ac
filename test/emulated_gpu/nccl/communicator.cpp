#include "emulated_gpu/nccl/communicator.h"

#include <cuda_runtime_api.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "emulated_gpu/gpu.h"

using namespace gptbench::emulation;

namespace {

// Longer than anything that ends by itself takes in a test.
constexpr auto for_ever = std::chrono::seconds(20);

std::mutex message_mutex;
std::string message;

}  // namespace

namespace gptbench::emulation {

void set_last_error(const std::string& text) {
  const std::lock_guard<std::mutex> lock(message_mutex);
  message = text;
}

std::string last_error() {
  const std::lock_guard<std::mutex> lock(message_mutex);
  return message;
}

}  // namespace gptbench::emulation

ncclComm::ncclComm(const ncclUniqueId& id, int all, int own, bool blocking)
    : ranks(all),
      rank(own),
      fault(fault_of(own)),
      board(std::make_unique<Board>(id, all)),
      sends_begun(static_cast<size_t>(all)),
      receives_begun(static_cast<size_t>(all)),
      blocking_(blocking) {
  if (fault.kind == FaultKind::absent) return;
  Seat& seat = board->seat(rank);
  int32_t nobody = 0;
  if (!seat.process.compare_exchange_strong(nobody, static_cast<int32_t>(getpid())))
    misuse("ncclCommInitRankConfig: rank %d of a communicator joins twice", rank);
  int device = 0;
  cudaGetDevice(&device);
  cudaDeviceGetPCIBusId(seat.gpu, static_cast<int>(gpu_name_bytes), device);
  seat.state.store(SeatState::taken);
}

void ncclComm::fail(ncclResult_t error, const std::string& text) {
  ncclResult_t none = ncclSuccess;
  if (error_.compare_exchange_strong(none, error)) set_last_error(text);
}

ncclResult_t ncclComm::fail_where_a_peer_is_gone() {
  const int lost = board->gone(rank);
  if (lost >= 0)
    fail(ncclRemoteError, "rank " + std::to_string(lost) + " has left the communicator");
  return error_;
}

ncclResult_t ncclComm::join_locked() {
  if (fault.kind == FaultKind::absent || !board->all(SeatState::taken)) {
    const ncclResult_t error = fail_where_a_peer_is_gone();
    return error != ncclSuccess ? error : ncclInProgress;
  }
  for (int a = 0; a < ranks; ++a)
    for (int b = a + 1; b < ranks; ++b)
      if (std::strcmp(board->seat(a).gpu, board->seat(b).gpu) == 0)
        fail(ncclInvalidUsage, "Duplicate GPU detected: rank " + std::to_string(a) + " and rank " +
                                   std::to_string(b) + " both on CUDA device " +
                                   board->seat(a).gpu);
  life_ = Life::ready;
  return error_;
}

ncclResult_t ncclComm::finalize_locked() {
  if (operations_alive == 0) board->seat(rank).state.store(SeatState::finalized);
  if (operations_alive == 0 && board->all(SeatState::finalized)) {
    life_ = Life::finalized;
    return ncclSuccess;
  }
  const ncclResult_t error = fail_where_a_peer_is_gone();
  return error != ncclSuccess ? error : ncclInProgress;
}

// Tells the peer that this rank was asked for `message`; whether the peer was asked for it, too.
// Collectives need nothing: their ranks are connected when they join.
bool ncclComm::connect(const Note& message) const {
  if (is_collective(message.kind)) return true;
  const bool sends = message.kind == Kind::send;
  Channel& channel =
      sends ? board->channel(rank, message.peer) : board->channel(message.peer, rank);
  (sends ? channel.sender_asked : channel.receiver_asked) = true;
  return channel.sender_asked && channel.receiver_asked;
}

ncclResult_t ncclComm::state_locked() {
  if (error_ != ncclSuccess) return error_;
  if (polls_left_ > 0) {
    --polls_left_;
    return ncclInProgress;
  }
  if (life_ == Life::joining) return join_locked();
  if (life_ == Life::finalizing) return finalize_locked();
  if (asked_ != nullptr) {
    if (!connect(asked_note_)) {
      const ncclResult_t error = fail_where_a_peer_is_gone();
      return error != ncclSuccess ? error : ncclInProgress;
    }
    const std::function<void()> work = std::move(asked_);
    asked_ = nullptr;
    work();
  }
  return operations_alive > 0 ? fail_where_a_peer_is_gone() : error_.load();
}

ncclResult_t ncclComm::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_locked();
}

ncclResult_t ncclComm::wait() {
  for (;;) {
    const ncclResult_t result = state();
    if (result != ncclInProgress) return result;
    sched_yield();
  }
}

void ncclComm::expect_settled_locked(const char* call) const {
  if (life_ == Life::joining)
    misuse("%s on a communicator that is not yet joined (ncclInProgress)", call);
  if (asked_ != nullptr)
    misuse("%s while the communicator's last operation is not enqueued (ncclInProgress)", call);
  if (life_ == Life::finalizing || life_ == Life::finalized)
    misuse("%s on a communicator after ncclCommFinalize", call);
}

void ncclComm::expect_settled(const char* call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_ == ncclSuccess) expect_settled_locked(call);
}

ncclResult_t ncclComm::start(const char* call, const Request& request, cudaStream_t stream) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error_ != ncclSuccess) return error_;
    expect_settled_locked(call);
    const auto operation =
        std::make_shared<Operation>(shared_from_this(), request, stream, latest_.lock());
    latest_ = operation;
    asked_ = [operation, stream, name = std::string(call)] {
      enqueue(stream, name, [operation] { return operation->step(); });
    };
    asked_note_ = request.note;
    polls_left_ = blocking_ ? 0 : static_cast<int>(operations_asked_++ % 3);
  }
  return blocking_ ? wait() : ncclInProgress;
}

ncclResult_t ncclComm::finalize() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error_ != ncclSuccess) return error_;
    expect_settled_locked("ncclCommFinalize");
    life_ = Life::finalizing;
    polls_left_ = 1;
  }
  return blocking_ ? wait() : ncclInProgress;
}

ncclResult_t ncclComm::destroy() {
  if (error_ != ncclSuccess)
    misuse("ncclCommDestroy of a communicator that has met an error: ncclCommAbort ends it");
  bool finalized = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (life_ == Life::finalizing)
      misuse("ncclCommDestroy before ncclCommFinalize has come to its end (ncclInProgress)");
    finalized = life_ == Life::finalized;
  }
  if (!finalized) {
    const ncclResult_t begun = finalize();
    const ncclResult_t ended = begun == ncclInProgress ? wait() : begun;
    if (ended != ncclSuccess) return ended;
  }
  board.reset();
  return ncclSuccess;
}

void ncclComm::abort() {
  aborted = true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_ = nullptr;
    if (fault.kind != FaultKind::absent) board->seat(rank).state.store(SeatState::aborted);
  }
  const auto start = std::chrono::steady_clock::now();
  while (operations_alive > 0) {
    if (std::chrono::steady_clock::now() - start > for_ever)
      misuse(
          "ncclCommAbort waits for ever: operations of the communicator stand in a stream behind "
          "work that does not end, or a graph that recorded some lives");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  board.reset();
}
