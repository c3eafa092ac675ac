// Spans of a stream between events.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
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
  // A label that lasts takes no second event.
  void mark(Queue& queue, int label) override;
  void collect(std::vector<double>& seconds) override;
  void repeat() override { labels_ = collected_; }
  void forget() override { labels_.clear(); }

 private:
  std::deque<TimedEvent> events_;  // as many as the largest collection had; reused
  std::vector<int> labels_;        // of the marks since the last collection
  std::vector<int> collected_;     // of those before
};

}  // namespace gptbench
