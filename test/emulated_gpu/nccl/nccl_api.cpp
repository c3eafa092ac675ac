// The functions of NCCL that cuda/nccl_library.cpp opens. What the library's documentation does not
// allow ends the process; so does a communicator of which nobody knows.
#include <nccl.h>

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "emulated_gpu/gpu.h"
#include "emulated_gpu/nccl/communicator.h"
#include "emulated_gpu/nccl/reduce.h"

using namespace gptbench::emulation;

namespace {

// Communicators are kept when they have ended, so that a use after that is seen.
struct Known {
  std::shared_ptr<ncclComm> comm;
  const char* ended = nullptr;  // how
};
std::mutex known_mutex;
std::map<const ncclComm*, Known>& known() {
  static auto* const all = new std::map<const ncclComm*, Known>;
  return *all;
}

std::shared_ptr<ncclComm> alive(const ncclComm* comm, const char* call,
                                const char* ends_with = nullptr) {
  const std::lock_guard<std::mutex> lock(known_mutex);
  const auto found = known().find(comm);
  if (found == known().end())
    misuse("%s: %p is no communicator", call, static_cast<const void*>(comm));
  if (found->second.ended != nullptr)
    misuse("%s on a communicator after %s", call, found->second.ended);
  found->second.ended = ends_with;
  return found->second.comm;
}

bool overlap(const char* a, size_t a_bytes, const char* b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

void check_array(const char* call, const void* array, size_t bytes, size_t element_bytes) {
  if (bytes == 0) return;
  if (!is_device_memory(array, bytes))
    misuse("%s: %p is not %zu bytes of device memory", call, array, bytes);
  if (reinterpret_cast<uintptr_t>(array) % element_bytes != 0)
    misuse("%s: %p is not aligned to elements of %zu bytes", call, array, element_bytes);
}

ncclResult_t start(const char* call, const Request& request, size_t in_blocks, size_t out_blocks,
                   ncclComm_t handle, cudaStream_t stream) {
  const std::shared_ptr<ncclComm> comm = alive(handle, call);
  comm->expect_settled(call);
  const Note& note = request.note;
  const size_t element_bytes = size_of(note.type);
  if (element_bytes == 0) misuse("%s: type %d is not emulated", call, static_cast<int>(note.type));
  if (note.reduction != ncclSum && note.reduction != ncclMax)
    misuse("%s: reduction %d is not emulated", call, static_cast<int>(note.reduction));
  // A message to itself would need a group of calls, which gptbench does not use.
  if (!is_collective(note.kind) &&
      (note.peer < 0 || note.peer >= comm->ranks || note.peer == comm->rank))
    misuse("%s: rank %d has no peer %d in a communicator of %d", call, comm->rank, note.peer,
           comm->ranks);
  if (is_collective(note.kind) && note.count == 0) return ncclSuccess;  // nobody waits for it
  const size_t block = note.count * element_bytes;
  check_array(call, request.in, in_blocks * block, element_bytes);
  check_array(call, request.out, out_blocks * block, element_bytes);
  // In place means: at the rank's own block where one side has several.
  const char* const in = static_cast<const char*>(request.in);
  const char* const out = static_cast<const char*>(request.out);
  const size_t own = static_cast<size_t>(comm->rank) * block;
  const bool in_place = in + (in_blocks > 1 ? own : 0) == out + (out_blocks > 1 ? own : 0);
  if (in_blocks > 0 && out_blocks > 0 && !in_place &&
      overlap(in, in_blocks * block, out, out_blocks * block))
    misuse("%s: input and output overlap and are not in place", call);
  return comm->start(call, request, stream);
}

Request request_of(Kind kind, const void* in, void* out, size_t count, ncclDataType_t type,
                   ncclRedOp_t reduction = ncclSum, int peer = -1) {
  Request request;
  request.note.kind = kind;
  request.note.type = type;
  request.note.reduction = reduction;
  request.note.peer = peer;
  request.note.count = count;
  request.in = in;
  request.out = out;
  return request;
}

size_t ranks_of(ncclComm_t comm, const char* call) {
  return static_cast<size_t>(alive(comm, call)->ranks);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

// Text of the last failure in the process, whatever the communicator.
const char* ncclGetLastError(ncclComm_t) {
  static thread_local std::string text;
  text = last_error();
  return text.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  try {
    *id = Board::make();
    return ncclSuccess;
  } catch (const std::runtime_error& error) {
    set_last_error(error.what());
    return ncclSystemError;
  }
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  *comm = nullptr;
  if (ranks < 1 || ranks > max_ranks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
  if (config != nullptr && (config->size != initial.size || config->magic != initial.magic))
    misuse("ncclCommInitRankConfig: a configuration without NCCL_CONFIG_INITIALIZER");
  const bool blocking = config == nullptr || config->blocking != 0;
  try {
    const auto made = std::make_shared<ncclComm>(id, ranks, rank, blocking);
    {
      const std::lock_guard<std::mutex> lock(known_mutex);
      known()[made.get()].comm = made;
    }
    *comm = made.get();
    return blocking ? made->wait() : ncclInProgress;
  } catch (const std::runtime_error& error) {
    set_last_error(error.what());
    return ncclRemoteError;
  }
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = alive(comm, "ncclCommGetAsyncError")->state();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  alive(comm, "ncclCommAbort", "ncclCommAbort")->abort();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return alive(comm, "ncclCommFinalize")->finalize();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return alive(comm, "ncclCommDestroy", "ncclCommDestroy")->destroy();
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  const std::shared_ptr<ncclComm> known = alive(comm, "ncclCommCount");
  known->expect_settled("ncclCommCount");
  *count = known->ranks;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  return start("ncclAllReduce", request_of(Kind::all_reduce, in, out, count, type, reduction), 1, 1,
               comm, stream);
}

ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  return start("ncclReduceScatter",
               request_of(Kind::reduce_scatter, in, out, count, type, reduction),
               ranks_of(comm, "ncclReduceScatter"), 1, comm, stream);
}

ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return start("ncclAllGather", request_of(Kind::all_gather, in, out, count, type), 1,
               ranks_of(comm, "ncclAllGather"), comm, stream);
}

ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return start("ncclSend", request_of(Kind::send, in, nullptr, count, type, ncclSum, peer), 1, 0,
               comm, stream);
}

ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return start("ncclRecv", request_of(Kind::receive, nullptr, out, count, type, ncclSum, peer), 0,
               1, comm, stream);
}
}
