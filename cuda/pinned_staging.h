// Copies between ordinary host memory and a GPU, through page-locked memory of the device's own, so
// that uploads do not stop the caller.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

namespace gptbench {

class PinnedStaging {
 public:
  PinnedStaging();  // throws Error(Exit::out_of_memory)
  ~PinnedStaging();
  PinnedStaging(const PinnedStaging&) = delete;
  PinnedStaging& operator=(const PinnedStaging&) = delete;

  // Enqueues on `stream`; when it returns, `host` may be reused.
  void upload(cudaStream_t stream, void* device, const void* host, int64_t bytes);
  // Blocks until `host` holds the data.
  void download(cudaStream_t stream, void* host, const void* device, int64_t bytes);

 private:
  static constexpr int num_slots = 8;
  static constexpr int64_t slot_bytes = int64_t{1} << 20;

  char* slot(int i) const { return memory_ + i * slot_bytes; }

  char* memory_ = nullptr;
  std::array<cudaEvent_t, num_slots> busy_{};  // until the copy of a slot has completed
  int next_ = 0;
};

}  // namespace gptbench
