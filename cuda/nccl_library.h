// The functions of NCCL that gptbench calls, from the library that is opened at run time. What is
// handed to the library is counted here, below the communicators: the counterpart of the profiling
// interface of MPI (comm/message_counter.h), and as independent of what communicators book.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "cuda/dynamic_library.h"
#include "plan/grid.h"

namespace gptbench {

class Nccl {
 public:
  Nccl();  // throws Error(Exit::usage) where the library is missing

  std::string description() const;  // "NCCL 2.28.9"
  ncclUniqueId unique_id() const;
  // Joins a communicator of `size` ranks, and settles. NCCL writes to `comm` itself until then, so
  // that it must be where the communicator is kept; after an error it may be there, to be aborted.
  void join(ncclComm_t& comm, const ncclUniqueId& id, int size, int rank, double timeout_s) const;
  // Waits until what was last asked of `comm` is enqueued; throws Error(Exit::peer) where it fails
  // or does not come to pass within timeout_s.
  void settle(ncclComm_t comm, double timeout_s) const;
  // Throws Error(Exit::peer) where the communicator has met an error since.
  void check(ncclComm_t comm) const;
  void abort(ncclComm_t comm) const;
  // Leaves all of them in order with their peers; aborts those of which some peer does not.
  void destroy(const std::vector<ncclComm_t>& comms) const;

  // Messages on `comm` are counted under `axis` from now on.
  static void count_messages_of(ncclComm_t comm, Axis axis);
  static void forget_messages_of(ncclComm_t comm);

  // The operations; each settles.
  void all_reduce(void* data, int64_t count, ncclDataType_t type, ncclComm_t comm,
                  cudaStream_t stream, ncclRedOp_t operation = ncclSum) const;
  void reduce_scatter(void* out, const void* in, int64_t count, ncclDataType_t type,
                      ncclComm_t comm, cudaStream_t stream) const;
  void all_gather(void* out, const void* in, int64_t count, ncclDataType_t type, ncclComm_t comm,
                  cudaStream_t stream) const;
  void send(const void* data, int64_t count, ncclDataType_t type, int peer, ncclComm_t comm,
            cudaStream_t stream) const;
  void receive(void* data, int64_t count, ncclDataType_t type, int peer, ncclComm_t comm,
               cudaStream_t stream) const;

 private:
  void check(ncclResult_t result, ncclComm_t comm, const char* call) const;
  // Ends the call of an operation: checks its result, waits until the communicator has settled.
  void finish(ncclResult_t result, ncclComm_t comm, const char* call) const;
  int64_t ranks_of(ncclComm_t comm) const;

  DynamicLibrary library_;
  GPTBENCH_FUNCTION(library_, ncclGetVersion);
  GPTBENCH_FUNCTION(library_, ncclGetErrorString);
  GPTBENCH_FUNCTION(library_, ncclGetLastError);
  GPTBENCH_FUNCTION(library_, ncclGetUniqueId);
  GPTBENCH_FUNCTION(library_, ncclCommInitRankConfig);
  GPTBENCH_FUNCTION(library_, ncclCommGetAsyncError);
  GPTBENCH_FUNCTION(library_, ncclCommAbort);
  GPTBENCH_FUNCTION(library_, ncclCommFinalize);
  GPTBENCH_FUNCTION(library_, ncclCommDestroy);
  GPTBENCH_FUNCTION(library_, ncclCommCount);
  GPTBENCH_FUNCTION(library_, ncclAllReduce);
  GPTBENCH_FUNCTION(library_, ncclReduceScatter);
  GPTBENCH_FUNCTION(library_, ncclAllGather);
  GPTBENCH_FUNCTION(library_, ncclSend);
  GPTBENCH_FUNCTION(library_, ncclRecv);
};

}  // namespace gptbench
