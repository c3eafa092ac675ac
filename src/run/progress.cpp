#include "run/progress.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "record/steps.h"

namespace gptbench {
namespace {

constexpr int64_t evaluations_per_run = 3;
constexpr size_t recent_steps = 9;  // whose median stands for those to come

// Parts of a run, each with a line at its end. With the rest of a report that has them all, these
// fit in 60 lines.
int64_t parts_of(const Progress::Length& length) {
  return length.evaluates ? 4 : 10;
}

}  // namespace

Progress::Length Progress::length_of(const Config& config, int64_t first_step) {
  return {config.run.steps, config.run.warmup_steps, config.run.limits.duration_s, first_step,
          config.convergence.evaluate_every > 0};
}

int64_t Progress::max_lines(const Length& length) {
  // The first step, and the end of the warm-up or a last one behind lines that broke a silence.
  constexpr int64_t others = 2;
  const int64_t parts = parts_of(length);
  const int64_t evaluations = length.evaluates ? evaluations_per_run : 0;
  if (length.duration_s > 0.0) return others + parts + evaluations + (length.evaluates ? 1 : 0);
  const int64_t steps = std::max<int64_t>(1, length.steps);
  return std::min(steps, others + steps / ceil_div(steps, parts)) + evaluations;
}

bool Progress::is_part(int64_t step, double now_s) const {
  if (log_every_ > 0) return (step + 1) % log_every_ == 0;
  if (length_.duration_s == 0.0) {
    const int64_t steps = ceil_div(length_.steps, parts_of(length_));
    return (step + 1) % steps == 0 && (step + 1) / steps > lines_;
  }
  if (step < warmup_end()) return step + 1 == warmup_end();
  const double part_s = length_.duration_s / static_cast<double>(parts_of(length_));
  return now_s - printed_s_ >= part_s &&
         now_s - timed_begin_s_ >= part_s * static_cast<double>(lines_ + 1);
}

bool Progress::is_due(int64_t step, double now_s) {
  const bool last = length_.duration_s == 0.0 && step + 1 == length_.steps;
  if (step == length_.first_step || last || is_part(step, now_s)) return true;
  if (now_s - printed_s_ < silence_s_) return false;
  silence_s_ *= 2.0;
  return true;
}

double Progress::left_s(int64_t step, double now_s) const {
  const double step_s = median({recent_s_.begin(), recent_s_.end()});
  if (length_.duration_s == 0.0) return step_s * static_cast<double>(length_.steps - step - 1);
  const int64_t warmup_left = std::max<int64_t>(0, warmup_end() - step - 1);
  const double end_s = (warmup_left > 0 ? now_s : timed_begin_s_) + length_.duration_s;
  return std::max(0.0, end_s - now_s) + step_s * static_cast<double>(warmup_left);
}

void Progress::add(int64_t step, const StepResult& result, double now_s) {
  if (step == length_.first_step) {
    milliseconds_ = result.time_s < 1.0;
    console_.say(printed("    step      loss grad norm %9s   tokens/s   TFLOP/s  left (s)\n",
                         milliseconds_ ? "time (ms)" : "time (s)"));
  }
  if (step + 1 <= std::max(length_.first_step + 1, warmup_end())) timed_begin_s_ = now_s;
  recent_s_.push_back(result.time_s);
  if (recent_s_.size() > recent_steps) recent_s_.pop_front();
  const bool reports_skip = result.skipped && (log_every_ > 0 || !reported_skip_);
  reported_skip_ = reported_skip_ || reports_skip;
  if (result.skipped && !reports_skip) ++unreported_skips_;
  const bool due = is_due(step, now_s);
  if (!due && !reports_skip) return;
  printed_s_ = now_s;
  const int64_t counted_from = length_.duration_s == 0.0 ? length_.first_step + 1 : warmup_end();
  if (due && step >= counted_from) ++lines_;
  const std::string count = std::to_string(step + 1) +
                            (length_.duration_s > 0.0 ? "" : "/" + std::to_string(length_.steps));
  std::string note = step < warmup_end() ? " warm-up" : "";
  if (unreported_skips_ > 0) note = " " + std::to_string(unreported_skips_) + " skipped";
  unreported_skips_ = 0;
  console_.say(printed("%8s %9.5f %9.4g %9.*f %10.1f %9.4g %9.2f%s\n", count.c_str(), result.loss,
                       result.grad_norm, milliseconds_ ? 3 : 4,
                       result.time_s * (milliseconds_ ? 1e3 : 1.0), tokens_ / result.time_s,
                       flops_ / result.time_s / 1e12, left_s(step, now_s), note.c_str()));
  if (reports_skip)
    console_.say(printed("         skipped: gradient not finite; loss scale %g, next %g\n",
                         result.loss_scale, result.next_loss_scale));
}

void Progress::evaluated(int64_t steps, double loss, double now_s) {
  const bool last = length_.duration_s == 0.0 && steps == length_.steps;
  const bool due =
      length_.duration_s > 0.0 && log_every_ == 0
          ? now_s - evaluated_s_ >= length_.duration_s / static_cast<double>(evaluations_per_run)
          : steps - evaluated_steps_ >=
                (log_every_ > 0 ? log_every_ : ceil_div(length_.steps, evaluations_per_run));
  if (!last && !due) return;
  evaluated_steps_ = steps;
  evaluated_s_ = now_s;
  console_.say(
      printed("Held-out loss after step %lld: %.6f\n", static_cast<long long>(steps), loss));
}

}  // namespace gptbench
