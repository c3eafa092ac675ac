// Spans of a stream between events.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "device/device.h"

namespace gptbench {

class CudaStopwatch final : public Stopwatch {
 public:
  CudaStopwatch() = default;
  ~CudaStopwatch() override;
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;

  // A label that lasts takes no second event.
  void mark(Queue& queue, int label) override;
  void collect(std::vector<double>& seconds) override;

 private:
  std::vector<cudaEvent_t> events_;  // as many as the largest collection had; reused
  std::vector<int> labels_;          // of the marks since the last collection
};

}  // namespace gptbench
