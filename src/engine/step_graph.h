// Steps that are recorded once and replayed (CUDA graphs).
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "device/device.h"
#include "engine/input_memory.h"

namespace gptbench {

class StepGraph {
 public:
  // Collective: whether the argument is true on all ranks.
  using Agreement = std::function<bool(bool)>;

  // `recorder`: of the device, which must outlive it; null where it has none. Nothing is recorded
  // before allow().
  explicit StepGraph(Recorder* recorder) : recorder_(recorder) {}

  // The device has a recorder. `required`: where a device refuses to record, the run ends.
  void allow(bool required, Agreement all_ranks) {
    required_ = required;
    all_ranks_ = std::move(all_ranks);
  }
  // A step was issued without a recording; what is made on first use has been made.
  void step_issued() { warm_ = all_ranks_ != nullptr; }

  // The next step is to be recorded.
  bool due() const { return warm_ && refusal_.empty(); }
  bool recorded() const { return recordings_.front() != nullptr; }
  // Collective: all ranks record or none does, since messages that some replay and others issue
  // would not meet. Records what `issue(set)` enqueues for each set of input memory, set 0 last, on
  // `compute` and on queues that join the recording behind it; nothing runs before replay(). False
  // where the device of some rank refused; throws Error(Exit::peer) where recordings are required.
  bool record(Queue& compute, const std::function<void(int)>& issue);
  void replay(Queue& compute, int set) { recordings_[static_cast<size_t>(set)]->replay(compute); }
  const std::string& refusal() const { return refusal_; }  // why; "" where no device refused

 private:
  Recorder* recorder_;
  Agreement all_ranks_;
  bool required_ = false, warm_ = false;
  std::array<std::unique_ptr<Recording>, InputMemory::num_sets> recordings_;  // [set]
  std::string refusal_;
};

}  // namespace gptbench
