// Tools of timed searches: arrays that may be refused, and the median time of a call.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "comm/pulse.h"
#include "cuda/cuda_stopwatch.h"

namespace gptbench {

class DeviceArray {
 public:
  explicit DeviceArray(int64_t bytes) {
    if (cudaMalloc(&data_, static_cast<size_t>(std::max<int64_t>(bytes, 1))) == cudaSuccess) return;
    cudaGetLastError();  // too little memory is an answer
    data_ = nullptr;
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

// Median time of `call`, in microseconds, after one call that is not counted; negative where a call
// returns false.
template <class Call>
double median_us(cudaStream_t stream, const Call& call) {
  constexpr int runs_timed = 5;
  const TimedEvent begin, end;
  std::vector<double> times;
  for (int run = 0; run <= runs_timed; ++run) {
    GPTBENCH_CUDA(cudaEventRecord(begin, stream));
    if (!call()) return -1.0;
    GPTBENCH_CUDA(cudaEventRecord(end, stream));
    GPTBENCH_CUDA(cudaEventSynchronize(end));
    pulse.advance();
    if (run > 0) times.push_back(1e6 * seconds_between(begin, end));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace gptbench
