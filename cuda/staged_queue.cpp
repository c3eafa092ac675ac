#include "cuda/staged_queue.h"

#include <algorithm>

#include "base/units.h"
#include "cuda/cuda_error.h"

namespace gptbench {

StagedQueue::StagedQueue(std::vector<HostQueue*>& group, int64_t staging_bytes)
    : host_(group), steps_(max_pending), memory_bytes_(staging_bytes) {
  if (staging_bytes == 0) return;
  if (cudaHostAlloc(reinterpret_cast<void**>(&memory_), static_cast<size_t>(staging_bytes),
                    cudaHostAllocDefault) == cudaSuccess)
    return;
  cudaGetLastError();  // the failure is reported here, not by the next call
  throw Error(Exit::out_of_memory,
              "device = 'cuda': no page-locked host memory for messages or files (" +
                  format_bytes(staging_bytes) + ")");
}

StagedQueue::~StagedQueue() {
  cudaFreeHost(memory_);
}

void StagedQueue::record(Event& event) {
  static_cast<CudaEvent&>(event).set_host_point(host_);
}

void StagedQueue::wait(const Event& event) {
  const auto& awaited = static_cast<const CudaEvent&>(event);
  if (awaited.completed()) return;
  Step& step = next_step();
  step.set_wait(awaited);
  host_.add(step);
}

void StagedQueue::copy(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  Step& step = next_step();
  step.set_copy(stream_, to, from, bytes);
  host_.add(step);
}

char* StagedQueue::staging_of(int64_t bytes) const {
  GPTBENCH_CHECK(bytes <= memory_bytes_, "a message of " + std::to_string(bytes) +
                                             " bytes fits into staging memory of " +
                                             std::to_string(memory_bytes_));
  return memory_;
}

StagedQueue::Step& StagedQueue::next_step() {
  Step& step = steps_[next_];
  next_ = (next_ + 1) % steps_.size();
  if (step.busy()) host_.synchronize();
  return step;
}

void StagedQueue::Step::set_wait(const CudaEvent& event) {
  awaited_queue_ = event.host_queue();
  awaited_ticket_ = event.host_ticket();
  awaited_ = awaited_queue_ == nullptr ? &event : nullptr;
  busy_ = true;
}

void StagedQueue::Step::set_copy(CudaQueue& stream, void* to, const void* from, int64_t bytes) {
  awaited_ = nullptr;
  awaited_queue_ = nullptr;
  stream_ = &stream;
  to_ = to;
  from_ = from;
  bytes_ = bytes;
  started_ = false;
  busy_ = true;
}

bool StagedQueue::Step::test() {
  if (awaited_queue_ != nullptr) {
    busy_ = !awaited_queue_->completed(awaited_ticket_);
    return !busy_;
  }
  if (awaited_ == nullptr && !started_) {
    GPTBENCH_CUDA(cudaMemcpyAsync(to_, from_, static_cast<size_t>(bytes_), cudaMemcpyDefault,
                                  stream_->stream()));
    stream_->record(copied_);
    started_ = true;
  }
  if (!(awaited_ != nullptr ? *awaited_ : copied_).completed()) return false;
  busy_ = false;
  return true;
}

}  // namespace gptbench
