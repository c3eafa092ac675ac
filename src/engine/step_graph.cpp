#include "engine/step_graph.h"

#include "base/error.h"

namespace gptbench {

bool StepGraph::record(Queue& compute, const std::function<void(int)>& issue) {
  try {
    for (int set = InputMemory::num_sets - 1; set >= 0; --set) {
      recorder_->begin(compute);
      issue(set);
      recordings_[static_cast<size_t>(set)] = recorder_->end(compute);
    }
  } catch (const Error& error) {
    refusal_ = error.what();
    try {
      recorder_->end(compute);
    } catch (const Error&) {
      // It has ended.
    }
  }
  if (all_ranks_(refusal_.empty())) return true;
  if (refusal_.empty()) refusal_ = "the device of another rank refused";
  for (std::unique_ptr<Recording>& recording : recordings_) recording.reset();
  if (required_) throw Error(Exit::peer, refusal_);
  return false;
}

}  // namespace gptbench
