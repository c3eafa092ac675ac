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
  void repeat() override { labels_ = collected_; }
  void forget() override { labels_.clear(); }

 private:
  std::vector<cudaEvent_t> events_;  // as many as the largest collection had; reused
  std::vector<int> labels_;          // of the marks since the last collection
  std::vector<int> collected_;       // of those before
};

}  // namespace gptbench
