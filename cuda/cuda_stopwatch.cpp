#include "cuda/cuda_stopwatch.h"

#include <nvtx3/nvToolsExt.h>

#include "cuda/cuda_error.h"
#include "cuda/cuda_queue.h"
#include "cuda/cuda_recording.h"

namespace gptbench {

double seconds_between(cudaEvent_t begin, cudaEvent_t end) {
  float ms = 0.0f;
  GPTBENCH_CUDA(cudaEventElapsedTime(&ms, begin, end));
  return 1e-3 * static_cast<double>(ms);
}

void CudaStopwatch::mark(Queue& queue, int label) {
  if (!labels_.empty() && labels_.back() == label) return;
  show(label);
  if (labels_.size() == events_.size()) events_.emplace_back();
  // Within a recording a plain event only orders; this one is recorded by every replay.
  const unsigned flags =
      current_recording() != 0 ? cudaEventRecordExternal : cudaEventRecordDefault;
  GPTBENCH_CUDA(cudaEventRecordWithFlags(events_[labels_.size()], stream_of(queue), flags));
  labels_.push_back(label);
}

void CudaStopwatch::show(int label) {
  if (shown_) nvtxRangePop();
  shown_ = label >= 0 && static_cast<size_t>(label) < names_.size();
  if (shown_) nvtxRangePushA(names_[static_cast<size_t>(label)].c_str());
}

void CudaStopwatch::collect(std::vector<double>& seconds) {
  for (size_t i = 0; i + 1 < labels_.size(); ++i) {
    if (labels_[i] >= 0)
      seconds[static_cast<size_t>(labels_[i])] += seconds_between(events_[i], events_[i + 1]);
  }
  collected_.swap(labels_);
  labels_.clear();
}

}  // namespace gptbench
