#include "run/progress.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "record/steps.h"

namespace gptbench {
namespace {

constexpr int64_t evaluations_per_run = 3;
constexpr size_t recent_steps = 9;  // whose median stands for those to come
// Lines of a run of burn_in_s, which ends with a line about drift, are as far apart.
constexpr double gap_of_drift_s = 50.0;

// Parts of a run, each with a line at its end. With the rest of a report that has them all, these
// fit in 60 lines.
int64_t parts_of(const Progress::Length& length) {
  const bool has_last = length.duration_s > 0.0;  // of its own
  return (length.evaluates ? 3 : 10) - (has_last ? 1 : 0);
}

}  // namespace

Progress::Length Progress::length_of(const Config& config, int64_t first_step, double start_s) {
  Length length{config.run.steps, config.run.warmup_steps, config.run.limits.duration_s, first_step,
                config.convergence.evaluate_every > 0};
  const double limit_s = config.run.limits.time_limit_s;
  if (limit_s > 0.0) length.limit_at_s = start_s + limit_s;
  return length;
}

int64_t Progress::max_lines(const Length& length) {
  const int64_t parts = parts_of(length);
  const int64_t evaluations = length.evaluates ? evaluations_per_run : 0;
  // The first step, the end of the warm-up, the last step.
  if (length.duration_s > 0.0) return 3 + parts + evaluations + (length.evaluates ? 1 : 0);
  // The first step; each step of a few and a line about drift.
  const int64_t steps = std::max<int64_t>(1, length.steps);
  return 1 + std::min(steps, ceil_div(steps, ceil_div(steps, parts))) + evaluations;
}

bool Progress::is_part(int64_t step, double now_s) const {
  if (log_every_ > 0) return (step + 1) % log_every_ == 0;
  int64_t parts = parts_of(length_);
  double timed_s = length_.limit_at_s - timed_begin_s_;
  if (length_.duration_s == 0.0) {
    const int64_t steps = ceil_div(length_.steps, parts);
    if ((step + 1) % steps == 0 && (step + 1) / steps > lines_) return true;
    if (step < warmup_end()) return false;
    parts = length_.steps / steps;  // no more lines than max_lines() has
  } else {
    if (step < warmup_end()) return step + 1 == warmup_end();
    timed_s = std::min(timed_s, length_.duration_s);
  }
  const double part_s = timed_s / static_cast<double>(parts);
  return now_s - printed_s_ >= part_s &&
         now_s - timed_begin_s_ >= part_s * static_cast<double>(lines_ + 1);
}

bool Progress::is_due(int64_t step, bool is_last, double now_s) {
  if (step == length_.first_step) return true;
  if (!may_drift_ && now_s - printed_s_ >= gap_of_drift_s) {
    may_drift_ = true;
    ++lines_;
  }
  if (is_last || is_part(step, now_s)) return true;
  if (now_s - printed_s_ < silence_s_) return false;
  silence_s_ *= 2.0;
  return true;
}

double Progress::left_s(int64_t step, double now_s) const {
  const double step_s = median({recent_s_.begin(), recent_s_.end()});
  const double until_limit_s = std::max(0.0, length_.limit_at_s - now_s);
  if (length_.duration_s == 0.0)
    return std::min(until_limit_s, step_s * static_cast<double>(length_.steps - step - 1));
  const int64_t warmup_left = std::max<int64_t>(0, warmup_end() - step - 1);
  const double end_s = (warmup_left > 0 ? now_s : timed_begin_s_) + length_.duration_s;
  return std::min(until_limit_s,
                  std::max(0.0, end_s - now_s) + step_s * static_cast<double>(warmup_left));
}

void Progress::add(int64_t step, const StepResult& result, double now_s) {
  if (step == length_.first_step) {
    milliseconds_ = result.time_s < 1.0;
    console_.say(printed("%s      loss grad norm %9s   tokens/s   TFLOP/s  left (s)\n",
                         step_cell("step").c_str(), milliseconds_ ? "time (ms)" : "time (s)"));
  }
  if (step + 1 <= std::max(length_.first_step + 1, warmup_end())) timed_begin_s_ = now_s;
  recent_s_.push_back(result.time_s);
  if (recent_s_.size() > recent_steps) recent_s_.pop_front();
  const bool reports_skip = result.skipped && (log_every_ > 0 || !reported_skip_);
  reported_skip_ = reported_skip_ || reports_skip;
  if (result.skipped && !reports_skip) ++unreported_skips_;
  is_stopping_ = result.stop || (length_.duration_s == 0.0 && step + 1 == length_.steps);
  const bool due = is_due(step, is_stopping_, now_s);
  has_unprinted_ = !due;
  unprinted_ = result;
  if (due) {
    const int64_t counted_from = length_.duration_s == 0.0 ? length_.first_step + 1 : warmup_end();
    if (step >= counted_from) ++lines_;
    print_step(step, result, is_stopping_ ? 0.0 : left_s(step, now_s), now_s);
  }
  if (reports_skip)
    console_.say(printed("Step %lld skipped: gradient not finite; loss scale %g, next %g\n",
                         static_cast<long long>(step + 1), result.loss_scale,
                         result.next_loss_scale));
}

std::string Progress::step_cell(const std::string& text) const {
  const size_t digits = std::to_string(length_.steps).size();
  const size_t width = length_.duration_s > 0.0 ? 0 : 2 * digits + 1;  // of "steps/steps"
  return printed("%*s", static_cast<int>(std::max<size_t>(8, width)), text.c_str());
}

void Progress::print_step(int64_t step, const StepResult& result, double left_s, double now_s) {
  printed_s_ = now_s;
  const std::string count = std::to_string(step + 1) +
                            (length_.duration_s > 0.0 ? "" : "/" + std::to_string(length_.steps));
  std::string note = step < warmup_end() ? " warm-up" : "";
  if (unreported_skips_ > 0) note = " " + std::to_string(unreported_skips_) + " skipped";
  unreported_skips_ = 0;
  const std::string left = left_s > 0.0 ? printed("%.2f", left_s) : "-";
  console_.say(printed("%s %9.5f %9.4g %9.*f %10.1f %9.4g %9s%s\n", step_cell(count).c_str(),
                       result.loss, result.grad_norm, milliseconds_ ? 3 : 4,
                       result.time_s * (milliseconds_ ? 1e3 : 1.0), tokens_ / result.time_s,
                       flops_ / result.time_s / 1e12, left.c_str(), note.c_str()));
}

void Progress::evaluated(int64_t steps, double loss, bool ends, double now_s) {
  if (ends && has_unprinted_) print_step(steps - 1, unprinted_, 0.0, now_s);
  const bool due =
      length_.duration_s > 0.0 && log_every_ == 0
          ? now_s - evaluated_s_ >= length_.duration_s / static_cast<double>(evaluations_per_run)
          : steps - evaluated_steps_ >=
                (log_every_ > 0 ? log_every_ : ceil_div(length_.steps, evaluations_per_run));
  if (!ends && !is_stopping_ && !due) return;
  evaluated_steps_ = steps;
  evaluated_s_ = now_s;
  console_.say(
      printed("Held-out loss after step %lld: %.6f\n", static_cast<long long>(steps), loss));
}

}  // namespace gptbench
