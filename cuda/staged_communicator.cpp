#include "cuda/staged_communicator.h"

#include "cuda/staged_queue.h"

namespace gptbench {

void StagedCommunicator::reduce(Reduction reduction, Queue& queue, void* data, int64_t count,
                                DType type) {
  auto& staged = static_cast<StagedQueue&>(queue);
  const int64_t bytes = count * size_of(type);
  char* const memory = staged.staging_of(bytes);
  staged.copy(memory, data, bytes);
  (host_.get()->*reduction)(staged.host(), memory, count, type);
  staged.copy(data, memory, bytes);
}

// The full array lies first in staging memory, this rank's part behind it.
void StagedCommunicator::reduce_scatter(Queue& queue, void* out, const void* in, int64_t count,
                                        DType type) {
  auto& staged = static_cast<StagedQueue&>(queue);
  const int64_t part = count * size_of(type);
  const int64_t full = part * size();
  char* const memory = staged.staging_of(full + part);
  staged.copy(memory, in, full);
  host_->reduce_scatter(staged.host(), memory + full, memory, count, type);
  staged.copy(out, memory + full, part);
}

void StagedCommunicator::all_gather(Queue& queue, void* out, const void* in, int64_t count,
                                    DType type) {
  auto& staged = static_cast<StagedQueue&>(queue);
  const int64_t part = count * size_of(type);
  const int64_t full = part * size();
  char* const memory = staged.staging_of(full);
  char* const own = memory + rank() * part;
  staged.copy(own, in, part);
  host_->all_gather(staged.host(), memory, own, count, type);
  staged.copy(out, memory, full);
}

void StagedCommunicator::send(Queue& queue, const void* data, int64_t count, DType type, int peer,
                              int tag) {
  auto& staged = static_cast<StagedQueue&>(queue);
  // The queue waits on the host until the array is complete before it hands it over.
  if (from_device_) return host_->send(staged.host(), data, count, type, peer, tag);
  const int64_t bytes = count * size_of(type);
  char* const memory = staged.staging_of(bytes);
  staged.copy(memory, data, bytes);
  host_->send(staged.host(), memory, count, type, peer, tag);
}

void StagedCommunicator::receive(Queue& queue, void* data, int64_t count, DType type, int peer,
                                 int tag) {
  auto& staged = static_cast<StagedQueue&>(queue);
  if (from_device_) return host_->receive(staged.host(), data, count, type, peer, tag);
  const int64_t bytes = count * size_of(type);
  char* const memory = staged.staging_of(bytes);
  host_->receive(staged.host(), memory, count, type, peer, tag);
  staged.copy(data, memory, bytes);
}

}  // namespace gptbench
