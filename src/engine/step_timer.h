// Where the time of a step goes: by region, by program, and by kind of message.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

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
//
// Every mark of a recorded step is a node of its graph that kernels wait for. There only the first
// task of a program has a mark per region. A later one has a mark where it begins and marks around
// its waits for messages and transfers; what is left of its time is divided among regions as that
// of the first task.
class StepTimer {
 public:
  // `programs`, those of the plan, must outlive it.
  StepTimer(const std::vector<Program>& programs, Device& device);

  void begin_step() { times_ = {}; }
  // From here to mark_end() or forget_marks() the step is recorded.
  void begin_recording();
  void begin_program(int32_t program);  // its index
  void end_program();
  // Time of the host in an operation, in a wait for it, or in driving it.
  void book(const Op& op, double seconds);
  // The same after the last program, to whose time it belongs.
  void book_after_programs(const Op& op, double seconds);

  // From here on the compute queue works on `op`, or waits for it where it is a message.
  void mark(Queue& compute, const Op& op);
  // Nothing is booked from here on.
  void mark_end(Queue& compute) {
    recording_ = false;
    if (stopwatch_ != nullptr) stopwatch_->mark(compute, -1);
  }
  // The step is a replay of the marks collected last; or they are dropped (Stopwatch).
  void repeat_marks() {
    if (stopwatch_ != nullptr) stopwatch_->repeat();
  }
  void forget_marks() {
    recording_ = false;
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
  const std::vector<Program>& programs_;
  std::unique_ptr<Stopwatch> stopwatch_;  // null: the host's clock tells the times
  int32_t program_ = 0;
  bool recording_ = false;
  bool undivided_ = false;    // of the task under way, a mark per region is left out
  std::vector<bool> marked_;  // [program] it had a task in the recording under way
  double program_start_s_ = 0.0;
  StepTimes times_;
  ExposedTimes exposed_s_{};
};

}  // namespace gptbench
