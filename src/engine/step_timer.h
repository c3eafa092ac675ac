// Where the time of a step goes: by region, by program, and by kind of message.
#pragma once

#include <array>
#include <memory>

#include "device/device.h"
#include "plan/operation.h"

namespace gptbench {

// Times of one step by region and by program; local.
struct StepTimes {
  std::array<double, num_regions> region_s{};
  double forward_s = 0.0, backward_s = 0.0, optimizer_s = 0.0;  // with communication in programs
};

// Time spent waiting for messages and driving them, [axis][kind]; waits for a receive count under
// `send`. Local.
using ExposedTimes = std::array<std::array<double, num_op_kinds>, num_axes>;

// Books what the engine reads off the host's clock. Where the device has a stopwatch, marks on the
// compute queue tell the times instead: the host's clock would tell how long it took to enqueue.
class StepTimer {
 public:
  explicit StepTimer(Device& device);

  void begin_step() { times_ = {}; }
  void begin_program(ProgramKind kind);
  void end_program();
  // Time of the host in an operation, in a wait for it, or in driving it.
  void book(const Op& op, double seconds);

  // From here on the compute queue works on `op`, or waits for it where it is a message.
  void mark(Queue& compute, const Op& op);
  // Nothing is booked from here on.
  void mark_end(Queue& compute) {
    if (stopwatch_ != nullptr) stopwatch_->mark(compute, -1);
  }
  // The step is a replay of the marks collected last; or they are dropped (Stopwatch).
  void repeat_marks() {
    if (stopwatch_ != nullptr) stopwatch_->repeat();
  }
  void forget_marks() {
    if (stopwatch_ != nullptr) stopwatch_->forget();
  }
  // The marks' times take the place of the booked ones. The compute queue has been synchronised.
  void collect_marks();

  const StepTimes& times() const { return times_; }  // of the step
  // Sums over the steps since the last reset.
  const ExposedTimes& exposed_s() const { return exposed_s_; }
  void reset_exposed() { exposed_s_ = {}; }
  void set_exposed(const ExposedTimes& sums) { exposed_s_ = sums; }

 private:
  std::unique_ptr<Stopwatch> stopwatch_;  // null: the host's clock tells the times
  ProgramKind program_ = ProgramKind::begin_step;
  double program_start_s_ = 0.0;
  StepTimes times_;
  ExposedTimes exposed_s_{};
};

}  // namespace gptbench
