#include "cuda/nccl_library.h"

#include <sched.h>

#include <functional>
#include <map>

#include "base/clock.h"
#include "base/error.h"
#include "comm/message_totals.h"
#include "cuda/cuda_queue.h"
#include "cuda/cuda_recording.h"
#include "cuda/stream_watch.h"

namespace gptbench {
namespace {

std::map<ncclComm_t, Axis>& watched() {
  static std::map<ncclComm_t, Axis> instance;
  return instance;
}

int64_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return 8;
    case ncclFloat32:
      return 4;
    case ncclUint8:
      return 1;
    default:
      return 2;
  }
}

// Payload is that of the full array, as the plan counts it.
// Recorded messages count as often as they are replayed; empty ones, which nobody sends, do not.
void count(ncclComm_t comm, OpKind kind, int64_t elements, ncclDataType_t type) {
  if (elements == 0) return;
  const int64_t bytes = elements * bytes_of(type);
  const auto found = watched().find(comm);
  if (found == watched().end()) return;
  const auto add = [=, axis = found->second] { count_message(axis, kind, bytes); };
  if (current_recording() != 0)
    before_each_replay(add);
  else
    add();
}

}  // namespace

Nccl::Nccl() : library_("comm = 'nccl'", {"libnccl.so.2"}) {}

// 22809: 2.28.9.
std::string Nccl::description() const {
  int version = 0;
  ncclGetVersion(&version);
  return "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
         "." + std::to_string(version % 100);
}

ncclUniqueId Nccl::unique_id() const {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id), nullptr, "ncclGetUniqueId");
  return id;
}

void Nccl::join(ncclComm_t& comm, const ncclUniqueId& id, int size, int rank,
                double timeout_s) const {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // a call that waits for a lost peer would never return
  const ncclResult_t result = ncclCommInitRankConfig(&comm, size, id, rank, &config);
  if (result != ncclInProgress) check(result, comm, "ncclCommInitRankConfig");
  settle(comm, timeout_s);
}

void Nccl::settle(ncclComm_t comm, double timeout_s) const {
  const double start_s = now_s();
  for (;;) {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm, &state), comm, "ncclCommGetAsyncError");
    if (state != ncclInProgress) {
      check(state, comm, "a communicator of NCCL");
      return;
    }
    if (now_s() - start_s > timeout_s)
      throw Error(Exit::peer, "NCCL: a peer has not answered for " +
                                  std::to_string(static_cast<int>(timeout_s)) + " s");
    sched_yield();
  }
}

void Nccl::check(ncclComm_t comm) const {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm, &state), comm, "ncclCommGetAsyncError");
  if (state != ncclInProgress) check(state, comm, "a communicator of NCCL");
}

void Nccl::check(ncclResult_t result, ncclComm_t comm, const char* call) const {
  if (result == ncclSuccess) return;
  std::string message = std::string(call) + ": " + ncclGetErrorString(result);
  const char* const last = ncclGetLastError(comm);
  if (last != nullptr && last[0] != '\0') message += std::string(" (") + last + ")";
  // Buffers of connections are taken on first use.
  const bool no_memory = message.find("out of memory") != std::string::npos;
  throw Error(no_memory ? Exit::out_of_memory : Exit::peer, message);
}

void Nccl::abort(ncclComm_t comm) const {
  ncclCommAbort(comm);
}

void Nccl::destroy(const std::vector<ncclComm_t>& comms) const {
  // Finalising waits for the peers' last messages; one that is gone must not keep this rank.
  constexpr double patience_s = 30.0;
  const double start_s = now_s();
  std::vector<std::function<void()>> aborts;
  const auto or_abort = [&](ncclComm_t comm, const auto& work) {
    try {
      work();
    } catch (const Error&) {
      aborts.push_back([this, comm] { abort(comm); });
    }
  };
  // One after the other, as they were joined.
  for (ncclComm_t comm : comms)
    or_abort(comm, [&] {
      const ncclResult_t result = ncclCommFinalize(comm);
      if (result != ncclInProgress) check(result, comm, "ncclCommFinalize");
      settle(comm, start_s + patience_s - now_s());
      check(ncclCommDestroy(comm), comm, "ncclCommDestroy");
    });
  end_together(aborts, "leaving NCCL");
}

void Nccl::count_messages_of(ncclComm_t comm, Axis axis) {
  watched().emplace(comm, axis);
}

void Nccl::forget_messages_of(ncclComm_t comm) {
  watched().erase(comm);
}

// A call that does not block has enqueued its work when the communicator has settled, and only
// then.
void Nccl::finish(ncclResult_t result, ncclComm_t comm, const char* call) const {
  if (result != ncclInProgress) check(result, comm, call);
  settle(comm, peer_timeout_s);
}

void Nccl::all_reduce(void* data, int64_t elements, ncclDataType_t type, ncclComm_t comm,
                      cudaStream_t stream, ncclRedOp_t operation) const {
  count(comm, OpKind::all_reduce, elements, type);
  finish(ncclAllReduce(data, data, static_cast<size_t>(elements), type, operation, comm, stream),
         comm, "ncclAllReduce");
}

void Nccl::reduce_scatter(void* out, const void* in, int64_t elements, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) const {
  count(comm, OpKind::reduce_scatter, elements * ranks_of(comm), type);
  finish(ncclReduceScatter(in, out, static_cast<size_t>(elements), type, ncclSum, comm, stream),
         comm, "ncclReduceScatter");
}

void Nccl::all_gather(void* out, const void* in, int64_t elements, ncclDataType_t type,
                      ncclComm_t comm, cudaStream_t stream) const {
  count(comm, OpKind::all_gather, elements * ranks_of(comm), type);
  finish(ncclAllGather(in, out, static_cast<size_t>(elements), type, comm, stream), comm,
         "ncclAllGather");
}

void Nccl::send(const void* data, int64_t elements, ncclDataType_t type, int peer, ncclComm_t comm,
                cudaStream_t stream) const {
  count(comm, OpKind::send, elements, type);
  finish(ncclSend(data, static_cast<size_t>(elements), type, peer, comm, stream), comm, "ncclSend");
}

void Nccl::receive(void* data, int64_t elements, ncclDataType_t type, int peer, ncclComm_t comm,
                   cudaStream_t stream) const {
  finish(ncclRecv(data, static_cast<size_t>(elements), type, peer, comm, stream), comm, "ncclRecv");
}

int64_t Nccl::ranks_of(ncclComm_t comm) const {
  int ranks = 1;
  ncclCommCount(comm, &ranks);
  return ranks;
}

}  // namespace gptbench
