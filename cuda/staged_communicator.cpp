#include "cuda/staged_communicator.h"

#include "cuda/staged_queue.h"

namespace gptbench {

// Staging memory holds what the request reads or assigns; of a reduce_scatter the full array, and
// this rank's part after it.
void StagedCommunicator::enqueue(Queue& queue, const CommRequest& request) {
  auto& staged = static_cast<StagedQueue&>(queue);
  const bool scatters = request.kind == OpKind::reduce_scatter;
  const bool gathers = request.kind == OpKind::all_gather;
  const bool between_two = request.kind == OpKind::send || request.kind == OpKind::receive;
  // The queue waits on the host until an array on the GPU is complete before MPI gets it.
  if (from_device_ && between_two) return host_->enqueue(staged.host(), request);
  const int64_t part = request.count * size_of(request.type);
  const int64_t full = request.full_count(size()) * size_of(request.type);
  char* const memory = staged.staging_of(scatters ? full + part : full);
  char* const in = memory + (gathers ? rank() * part : 0);
  char* const out = memory + (scatters ? full : 0);
  if (request.in != nullptr) staged.copy(in, request.in, scatters ? full : part);
  CommRequest on_host = request;
  on_host.in = request.in != nullptr ? in : nullptr;
  on_host.out = request.out != nullptr ? out : nullptr;
  host_->enqueue(staged.host(), on_host);
  if (request.out != nullptr) staged.copy(request.out, out, gathers ? full : part);
}

}  // namespace gptbench
