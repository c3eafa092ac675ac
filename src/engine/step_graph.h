// Steps that are recorded once and replayed (CUDA graphs).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "device/device.h"

namespace gptbench {

class StepGraph {
 public:
  // Collective: whether the argument is true on all ranks.
  using Agreement = std::function<bool(bool)>;

  // `device` must outlive it. Nothing is recorded before allow().
  explicit StepGraph(Device& device) : device_(device) {}

  // `required`: where a device refuses to record, the run ends.
  void allow(bool required, Agreement all_ranks) {
    required_ = required;
    all_ranks_ = std::move(all_ranks);
  }
  // A step was issued without a recording; what is made on first use has been made.
  void step_issued() { warm_ = all_ranks_ != nullptr; }

  // The next step is to be recorded.
  bool due() const { return warm_ && refusal_.empty(); }
  bool recorded() const { return recording_ != nullptr; }
  // Collective: all ranks record or none does, since messages that some replay and others issue
  // would not meet. Records what `issue` enqueues, on `compute` and on queues that join the
  // recording behind it; nothing runs before replay(). False where the device of some rank refused;
  // throws Error(Exit::peer) where the recording is required.
  bool record(Queue& compute, const std::function<void()>& issue);
  void replay(Queue& compute) { recording_->replay(compute); }
  const std::string& refusal() const { return refusal_; }  // why; "" where no device refused

 private:
  Device& device_;
  Agreement all_ranks_;
  bool required_ = false, warm_ = false;
  std::unique_ptr<Recording> recording_;
  std::string refusal_;
};

}  // namespace gptbench
