#include "record/steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/flops_convention.h"
#include "base/sort_numbers.h"
#include "base/text.h"
#include "base/units.h"
#include "record/flops.h"

namespace gptbench {
namespace {

bool is_skipped(const StepSeries& steps, int64_t step) {
  const size_t i = static_cast<size_t>(step);
  return i < steps.skipped.size() && steps.skipped[i] != 0;
}

// Fits median rates of groups of consecutive steps, relative to that of all steps, over the time at
// the middle of each group; the slope is the median of the slopes between all pairs (Theil, Sen),
// which a disturbance of a few groups does not move.
void set_drift(RateFigures& rate, const std::vector<double>& timed) {
  constexpr size_t min_steps = 16, max_groups = 64;
  if (timed.size() < min_steps) return;
  const size_t groups = std::min(max_groups, timed.size());
  std::vector<double> rates, at_s, slopes;
  double elapsed_s = 0.0;
  for (size_t g = 0; g < groups; ++g) {
    const auto step = [&](size_t group) {
      return timed.begin() + static_cast<std::ptrdiff_t>(group * timed.size() / groups);
    };
    const double part_s = std::accumulate(step(g), step(g + 1), 0.0);
    rates.push_back(rate.sec_per_it / median({step(g), step(g + 1)}));
    at_s.push_back(elapsed_s + 0.5 * part_s);
    elapsed_s += part_s;
  }
  for (size_t a = 0; a < groups; ++a)
    for (size_t b = a + 1; b < groups; ++b)
      if (at_s[b] > at_s[a]) slopes.push_back((rates[b] - rates[a]) / (at_s[b] - at_s[a]));
  const double per_second = 100.0 * median(std::move(slopes));
  rate.drift_percent = per_second * elapsed_s;
  rate.drift_percent_per_hour = per_second * 3600.0;
}

}  // namespace

bool is_timed(const Record& record, int64_t step) {
  const std::vector<double>& time_s = record.steps.time_s;
  const size_t i = static_cast<size_t>(step);
  return step >= record.steps.warmup_steps && !is_skipped(record.steps, step) &&
         !(i < time_s.size() && std::isnan(time_s[i]));
}

std::vector<double> timed_step_times(const Record& record) {
  const std::vector<double>& time_s = record.steps.time_s;
  std::vector<double> timed;
  for (size_t step = 0; step < time_s.size(); ++step)
    if (is_timed(record, static_cast<int64_t>(step))) timed.push_back(time_s[step]);
  return timed;
}

int64_t skipped_after_warmup(const Record& record) {
  int64_t count = 0;
  for (int64_t step = 0; step < static_cast<int64_t>(record.steps.skipped.size()); ++step)
    count += step >= record.steps.warmup_steps && is_skipped(record.steps, step) ? 1 : 0;
  return count;
}

int64_t steps_after_warmup(const Record& record) {
  return record.summary.timed_steps + skipped_after_warmup(record);
}

double checkpoint_overhead(const Record& record) {
  const auto sum = [](const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0);
  };
  const double waits_s = sum(record.steps.checkpoint_s);
  const double whole_s = waits_s + sum(record.steps.time_s);
  return whole_s > 0.0 ? waits_s / whole_s : 0.0;
}

CheckpointCost checkpoint_cost(const Record& record) {
  const Summary& s = record.summary;
  CheckpointCost cost;
  if (s.checkpoint.write_s > 0.0)
    cost.bytes_per_s = static_cast<double>(s.checkpoint.bytes) / s.checkpoint.write_s;
  cost.node_bytes_per_s = cost.bytes_per_s / static_cast<double>(std::max<int64_t>(1, s.nodes));
  double waits_s = 0.0;
  for (const double wait_s : record.steps.checkpoint_s) waits_s += wait_s;
  if (waits_s == 0.0) return cost;
  // One that is written in the background is waited for in several steps.
  if (s.checkpoint.count > 0) cost.wait_s = waits_s / static_cast<double>(s.checkpoint.count);
  cost.stall_s = waits_s / static_cast<double>(record.steps.checkpoint_s.size());
  cost.overhead = checkpoint_overhead(record);
  return cost;
}

std::string stall_text(const CheckpointCost& cost) {
  return format_seconds(cost.stall_s) + " per step" +
         (cost.wait_s > 0.0 ? ", " + format_seconds(cost.wait_s) + " per checkpoint" : "");
}

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  sort_numbers(values);
  const size_t upper = values.size() / 2;
  return values.size() % 2 == 1 ? values[upper] : 0.5 * (values[upper - 1] + values[upper]);
}

double majority_deviation(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const double middle = median(values);
  for (double& value : values) value = std::abs(value / middle - 1.0);
  sort_numbers(values);
  return values[values.size() / 2];
}

double mean_of_smallest(double share, std::vector<double> values) {
  if (values.empty()) return 0.0;
  sort_numbers(values);
  // A share such as 0.1 is not exact.
  const double count = std::max(1.0, std::ceil(share * static_cast<double>(values.size()) - 1e-6));
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(count);
  return std::accumulate(values.begin(), end, 0.0) / count;
}

void summarise_steps(Record& record, int64_t sequences_per_step) {
  Summary& s = record.summary;
  RateFigures& rate = s.rate;
  const StepSeries& steps = record.steps;
  if (!steps.loss.empty()) s.convergence.final_loss = steps.loss.back();
  s.skipped_steps = static_cast<int64_t>(std::count_if(
      steps.skipped.begin(), steps.skipped.end(), [](int64_t skipped) { return skipped != 0; }));
  const std::vector<double> timed = timed_step_times(record);
  s.timed_steps = static_cast<int64_t>(timed.size());
  if (timed.empty()) return;

  rate.sec_per_it = median(timed);
  rate.sec_per_it_min = *std::min_element(timed.begin(), timed.end());
  rate.sec_per_it_max = *std::max_element(timed.begin(), timed.end());
  rate.tokens_per_s = static_cast<double>(s.tokens_per_step) / rate.sec_per_it;
  rate.samples_per_s = static_cast<double>(sequences_per_step) / rate.sec_per_it;
  const double per_device = 1e-12 / (rate.sec_per_it * static_cast<double>(s.world_size));
  s.flops.model_tflops_per_device = model_flops(s, s.flops.convention) * per_device;
  s.flops.hardware_tflops_per_device = hardware_flops(s, s.flops.convention) * per_device;
  set_figure_of_merit(s);
  set_drift(rate, timed);
}

void set_time_to_target(Record& record, double target_loss) {
  Summary& s = record.summary;
  ConvergenceFigures& convergence = s.convergence;
  const StepSeries& steps = record.steps;
  const std::vector<double>& losses = steps.held_out_loss;
  if (losses.empty()) return;
  convergence.held_out_loss = losses.back();
  const auto reached =
      std::find_if(losses.begin(), losses.end(), [&](double loss) { return loss <= target_loss; });
  if (target_loss <= 0.0 || reached == losses.end()) return;
  convergence.steps_to_target = steps.held_out_step[static_cast<size_t>(reached - losses.begin())];
  const int64_t steps_here = convergence.steps_to_target - s.resumed.steps;
  convergence.tokens_to_target = s.resumed.tokens + steps_here * s.tokens_per_step;
  if (s.resumed.steps > 0 && s.resumed.steps_s == 0.0) return;
  const double time_s =
      std::accumulate(steps.time_s.begin(), steps.time_s.begin() + steps_here, s.resumed.steps_s);
  if (!std::isnan(time_s)) convergence.time_to_target_s = time_s;
}

std::string drift_text(const Summary& summary) {
  const RateFigures& rate = summary.rate;
  if (!rate.drift_percent) return "";
  std::string text =
      printed("step rate changed by %+.2f %% over the timed steps", *rate.drift_percent);
  if (rate.sec_per_it * static_cast<double>(summary.timed_steps) >= burn_in_s &&
      rate.drift_percent_per_hour)
    text += printed(", %+.2f %% per hour", *rate.drift_percent_per_hour);
  return text;
}

void set_figure_of_merit(Summary& summary) {
  if (summary.rate.sec_per_it > 0.0)
    summary.flops.fom_tflops =
        1e-12 * model_flops(summary, name_of(FlopsConvention::causal)) / summary.rate.sec_per_it;
}

void set_peak(Summary& summary, double tflops, const std::string& source) {
  summary.peak.tflops = tflops;
  summary.peak.source = source;
  if (tflops <= 0.0 ||
      (source == peak_source::measured && summary.gemm_ceiling.spread > max_ceiling_spread)) {
    summary.flops.mfu = summary.flops.hfu = 0.0;
    return;
  }
  summary.flops.mfu = summary.flops.model_tflops_per_device / tflops;
  summary.flops.hfu = summary.flops.hardware_tflops_per_device / tflops;
}

}  // namespace gptbench
