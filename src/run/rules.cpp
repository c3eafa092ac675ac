#include "run/rules.h"

#include <cmath>
#include <numeric>

#include "base/text.h"
#include "deck/problem_class.h"
#include "record/steps.h"

namespace gptbench {
namespace {

using Broken = std::vector<std::string>;

void check_length(const Record& record, const ProblemClass& problem, Broken& broken) {
  const std::vector<double> times = timed_step_times(record);
  // A longer run.duration_s would not help a run that was cut short.
  const char* const advice =
      record.outcome.verdict == "NOT VERIFIED" ? "" : ": raise run.duration_s";
  const double timed_s = std::accumulate(times.begin(), times.end(), 0.0);
  if (timed_s < problem.min_duration_s)
    broken.push_back(printed("%.4g s are timed, at least %g s are required%s", timed_s,
                             problem.min_duration_s, advice));
  if (static_cast<double>(times.size()) < problem.min_steps)
    broken.push_back(printed("%zu steps are timed, at least %g are required%s", times.size(),
                             problem.min_steps, advice));
  if (const int64_t skipped = record.summary.skipped_steps; skipped > 0)
    broken.push_back(std::to_string(skipped) + " steps were skipped, none may be");
}

void check_loss(const Record& record, const ProblemClass& problem, Broken& broken) {
  if (record.steps.loss.empty()) return;  // a run without a timed step is too short
  const double first = record.steps.loss.front(), last = record.steps.loss.back();
  if (last <= first * (1.0 + problem.loss_rise_percent / 100.0)) return;  // false for NaN
  broken.push_back(printed("the loss went from %.4f to %.4f, it may rise by at most %g %%", first,
                           last, problem.loss_rise_percent));
}

void check_peak(const Record& record, Broken& broken) {
  if (record.summary.peak.tflops <= 0.0)
    broken.push_back("no peak is known: set output.peak_tflops");
}

void check_program(const Record& record, RulesTier tier, Broken& broken) {
  const std::string& commit = record.git_commit;
  if (tier == RulesTier::as_is && (commit.empty() || commit == "unknown" || commit.back() == '+'))
    broken.push_back("the program is not that of a commit (" + commit +
                     "): build a clean checkout, or use run.tier = 'tuned'");
}

}  // namespace

std::vector<std::string> broken_rules(const Record& record, const Config& config) {
  const ProblemClass* const problem = find_class(config.run.problem_class);
  if (problem == nullptr) return {};
  Broken broken = class_deviations(config, record.summary.world_size);
  const bool is_valid = record.outcome.verdict == "VALID";
  if (!is_valid) broken.push_back("the verdict is " + record.outcome.verdict);
  // A run that failed before its first timed step may have ended before its peak was measured, and
  // its length says nothing beyond the verdict.
  if (is_valid || !timed_step_times(record).empty()) {
    check_length(record, *problem, broken);
    check_peak(record, broken);
  }
  check_loss(record, *problem, broken);
  check_program(record, config.run.tier, broken);
  return broken;
}

RulesOutcome rules_of(const Record& record, const Config& config) {
  if (config.run.problem_class.empty()) return {};
  const Broken broken = broken_rules(record, config);
  return {broken.empty() ? "met" : "not met", join(broken, "; ")};
}

}  // namespace gptbench
