// The table of steps that grows on the console during training.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "engine/engine.h"
#include "run/console.h"

namespace gptbench {

// Prints the first step, the last one and every so many in between: output.log_every, or about ten
// in the whole run where that is 0. A line also appears once a minute, so that a long run shows
// that it lives. A skipped step has a line always.
class Progress {
 public:
  // The length of the run is `steps`, or `duration_s` of timed steps where that is not 0. The first
  // `first_step` of them, and no warm-up, are those of an earlier run that is continued.
  struct Length {
    int64_t steps = 0, warmup_steps = 0;
    double duration_s = 0.0;
    int64_t first_step = 0;
  };
  // tokens, flops: per step of the whole job. now_s: clock of the caller (base/clock.h).
  Progress(const Console& console, const Length& length, int64_t log_every, double tokens,
           double flops)
      : console_(console), length_(length), log_every_(log_every), tokens_(tokens), flops_(flops) {}

  // After each step, in order, from first_step.
  void add(int64_t step, const StepResult& result, double now_s);

 private:
  int64_t warmup_end() const { return length_.first_step + length_.warmup_steps; }
  bool is_due(int64_t step, double now_s) const;
  double left_s(int64_t step, double now_s) const;

  const Console& console_;
  Length length_;
  int64_t log_every_;
  double tokens_, flops_;
  std::deque<double> recent_s_;  // times of the latest steps
  bool milliseconds_ = false;    // unit of the column, chosen by the first step
  double timed_begin_s_ = 0.0;   // end of the warm-up
  double printed_s_ = 0.0;       // when the latest line was printed
};

}  // namespace gptbench
