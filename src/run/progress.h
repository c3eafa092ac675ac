// The table of steps that grows on the console during training.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <string>

#include "deck/config.h"
#include "engine/engine.h"
#include "run/console.h"

namespace gptbench {

// Prints the first step, the last one and every so many in between: output.log_every, or about ten
// in the whole run where that is 0, fewer where held-out losses come between; the run is as long as
// its steps or its time limit, whichever ends it first. The last one is also that of a run which
// ends before its steps: by time, by a signal, or since a target is reached. A line also appears
// after a silence of one minute, then of two, four and so on, so that a long run shows that it
// lives; later lines are left out for it, and one more for that about drift at the end, so that
// there are few. The first skipped step has a line of its own, later ones are counted in the next
// line; with log_every each has one.
class Progress {
 public:
  // The length of the run is `steps`, or `duration_s` of timed steps where that is not 0. The first
  // `first_step` of them, and no warm-up, are those of an earlier run that is continued.
  struct Length {
    int64_t steps = 0, warmup_steps = 0;
    double duration_s = 0.0;
    int64_t first_step = 0;
    bool evaluates = false;  // held-out losses come between the steps
    // When run.time_limit_s ends it, by the clock of add().
    double limit_at_s = std::numeric_limits<double>::infinity();
  };
  // tokens, flops: per step of the whole job. now_s: clock of the caller (base/clock.h).
  Progress(const Console& console, const Length& length, int64_t log_every, double tokens,
           double flops)
      : console_(console), length_(length), log_every_(log_every), tokens_(tokens), flops_(flops) {}

  // start_s: when the job began.
  static Length length_of(const Config& config, int64_t first_step, double start_s = 0.0);
  // Lines of steps, held-out losses and drift that a run prints at most where log_every is 0, if
  // not for many hours, without the heading and those of skipped steps.
  static int64_t max_lines(const Length& length);

  // After each step, in order, from first_step.
  void add(int64_t step, const StepResult& result, double now_s);
  // After an evaluation behind so many steps: prints the last one and some before. ends: the loss
  // has reached its target, which ends the run.
  void evaluated(int64_t steps, double loss, bool ends, double now_s);

 private:
  int64_t warmup_end() const { return length_.first_step + length_.warmup_steps; }
  bool is_part(int64_t step, double now_s) const;  // of the lines in between
  bool is_due(int64_t step, bool is_last, double now_s);
  // The text in the first column, which is as wide as the last step needs.
  std::string step_cell(const std::string& text) const;
  // left_s: 0 where no step follows, or where the limit that ends the run has passed.
  void print_step(int64_t step, const StepResult& result, double left_s, double now_s);
  double left_s(int64_t step, double now_s) const;

  const Console& console_;
  Length length_;
  int64_t log_every_;
  double tokens_, flops_;
  std::deque<double> recent_s_;  // times of the latest steps
  bool milliseconds_ = false;    // unit of the column, chosen by the first step
  double timed_begin_s_ = 0.0;   // end of the warm-up
  double printed_s_ = 0.0;       // when the latest line was printed
  double silence_s_ = 60.0;      // the next one that is broken
  bool may_drift_ = false;       // the run is so long that a line is left out for that about drift
  int64_t lines_ = 0;            // of the run after its first step, or of the timed steps
  bool reported_skip_ = false;
  int64_t unreported_skips_ = 0;
  StepResult unprinted_;  // the latest step, where has_unprinted_
  bool has_unprinted_ = false;
  bool is_stopping_ = false;     // the latest step is the last
  int64_t evaluated_steps_ = 0;  // of the latest evaluation that was printed
  double evaluated_s_ = 0.0;
};

}  // namespace gptbench
