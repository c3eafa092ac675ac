#include "cuda/pinned_staging.h"

#include <algorithm>
#include <cstring>

#include "cuda/cuda_error.h"
#include "cuda/stream_watch.h"

namespace gptbench {

PinnedStaging::PinnedStaging() {
  if (cudaHostAlloc(reinterpret_cast<void**>(&memory_), num_slots * slot_bytes,
                    cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();  // else the next check would report it
    throw Error(Exit::out_of_memory, "device = 'cuda': no page-locked host memory (8 MiB)");
  }
  for (cudaEvent_t& event : busy_)
    GPTBENCH_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
}

PinnedStaging::~PinnedStaging() {
  for (cudaEvent_t event : busy_) cudaEventDestroy(event);
  cudaFreeHost(memory_);
}

void PinnedStaging::upload(cudaStream_t stream, void* device, const void* host, int64_t bytes) {
  for (int64_t done = 0; done < bytes; done += slot_bytes) {
    const int i = next_;
    next_ = (next_ + 1) % num_slots;
    const size_t count = static_cast<size_t>(std::min(slot_bytes, bytes - done));
    wait_watched(busy_[static_cast<size_t>(i)]);
    std::memcpy(slot(i), static_cast<const char*>(host) + done, count);
    GPTBENCH_CUDA(cudaMemcpyAsync(static_cast<char*>(device) + done, slot(i), count,
                                  cudaMemcpyHostToDevice, stream));
    GPTBENCH_CUDA(cudaEventRecord(busy_[static_cast<size_t>(i)], stream));
  }
}

// One piece is on the way from the device while the one before it is copied on.
void PinnedStaging::download(cudaStream_t stream, void* host, const void* device, int64_t bytes) {
  const auto take = [&](int64_t at, int i) {
    wait_watched(busy_[static_cast<size_t>(i)]);
    std::memcpy(static_cast<char*>(host) + at, slot(i),
                static_cast<size_t>(std::min(slot_bytes, bytes - at)));
  };
  int previous = -1;
  for (int64_t done = 0; done < bytes; done += slot_bytes) {
    const int i = next_;
    next_ = (next_ + 1) % num_slots;
    wait_watched(busy_[static_cast<size_t>(i)]);
    GPTBENCH_CUDA(cudaMemcpyAsync(slot(i), static_cast<const char*>(device) + done,
                                  static_cast<size_t>(std::min(slot_bytes, bytes - done)),
                                  cudaMemcpyDeviceToHost, stream));
    GPTBENCH_CUDA(cudaEventRecord(busy_[static_cast<size_t>(i)], stream));
    if (previous >= 0) take(done - slot_bytes, previous);
    previous = i;
  }
  if (previous >= 0) take((bytes - 1) / slot_bytes * slot_bytes, previous);
}

}  // namespace gptbench
