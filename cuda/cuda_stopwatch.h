// Spans of a stream between events. While they are issued, tools see them as NVTX ranges.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "cuda/cuda_error.h"
#include "device/device.h"

namespace gptbench {

// An event of which the time is taken.
class TimedEvent {
 public:
  TimedEvent() { GPTBENCH_CUDA(cudaEventCreate(&event_)); }
  ~TimedEvent() { cudaEventDestroy(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};
// Seconds from one event to the other; both have completed.
double seconds_between(cudaEvent_t begin, cudaEvent_t end);

class CudaStopwatch final : public Stopwatch {
 public:
  ~CudaStopwatch() override { show(-1); }
  void set_names(std::vector<std::string> names) override { names_ = std::move(names); }
  // A label that lasts takes no second event.
  void mark(Queue& queue, int label) override;
  void collect(std::vector<double>& seconds) override;
  void repeat() override { labels_ = collected_; }
  void forget() override { labels_.clear(); }

 private:
  // Ends the range that is open, if any, and opens that of a label that has a name.
  void show(int label);

  std::vector<std::string> names_;  // [label]
  bool shown_ = false;
  std::deque<TimedEvent> events_;  // as many as the largest collection had; reused
  std::vector<int> labels_;        // of the marks since the last collection
  std::vector<int> collected_;     // of those before
};

}  // namespace gptbench
