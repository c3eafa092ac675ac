#include "calibrate/time_share.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "record/steps.h"
#include "run/signals.h"

namespace gptbench {
namespace {

constexpr double sample_s = 2e-3;  // calls shorter than this are timed several at once
constexpr double max_measurement_s = 0.25;
constexpr double max_samples = 40.0, max_calls = 200.0;

// Two calls that are longer than a measurement should be average what disturbs them by themselves,
// and leave time for more sizes.
double min_samples(double once_s) {
  return once_s > max_measurement_s ? 2.0 : 3.0;
}

// Calls of the shortest measurement: the first warms up, the second is a sample.
double min_calls(double once_s) {
  return 1.0 + min_samples(once_s);
}

}  // namespace

double spread_of(const std::vector<double>& samples) {
  double sum = 0.0, squares = 0.0;
  for (const double each : samples) sum += each;
  const double n = static_cast<double>(samples.size()), mean = sum / n;
  for (const double each : samples) squares += (each - mean) * (each - mean);
  return std::sqrt(squares / std::max(1.0, n - 1.0)) / mean;
}

double TimeDivision::left_s(double used_s) const {
  return std::max(0.0, limit_s_ - used_s);
}

double TimeDivision::begin(double used_s, double weight) {
  const double share = weight / weights_;
  weights_ -= weight;
  return left_s(used_s) * std::min(1.0, share);
}

// A phase has weight / (its own and later weights) of what those before it leave.
double sufficient_limit_s(const std::vector<PhaseNeed>& phases) {
  double weights = 0.0, before_s = 0.0, limit_s = 0.0;
  for (const PhaseNeed& phase : phases) weights += phase.weight;
  for (const PhaseNeed& phase : phases) {
    limit_s = std::max(limit_s, before_s + phase.time_s * weights / phase.weight);
    before_s += phase.time_s;
    weights -= phase.weight;
  }
  return limit_s;
}

TimeShare::TimeShare(MpiWorld& world, double seconds, int64_t items)
    : world_(world), end_s_(now_s() + seconds), items_(items) {}

bool TimeShare::has_time() {
  constexpr double stopped_s = -std::numeric_limits<double>::infinity();
  const double left_s = -world_.max(-(signal_pending() ? stopped_s : end_s_ - now_s()));
  return left_s > stopped_s && (once_s_ == 0.0 || left_s > min_calls(once_s_) * once_s_);
}

std::optional<CallTime> TimeShare::time(Queue& queue, const std::function<void()>& call,
                                        bool slowest, const std::function<void()>& prepare,
                                        double work) {
  if (!has_time()) {
    leave_out(1, work);
    return std::nullopt;
  }
  // The first call warms up: it may set up a library. The second tells the time of one.
  double once_s = 0.0, prepared_s = 0.0;
  for (int trial = 0; trial < 2; ++trial) {
    world_.barrier();
    const double begin_s = now_s();
    if (prepare) prepare();
    const double start_s = now_s();
    prepared_s = start_s - begin_s;
    call();
    queue.synchronize();
    once_s = now_s() - start_s;
  }
  const double second_s = once_s;
  once_s = std::max(world_.max(once_s), 1e-8);
  // On nodes that differ only some of the ranks may prepare.
  prepared_s = world_.max(prepared_s);
  once_s_ = once_s + prepared_s;
  prepared_s_ = prepared_s;
  const double per_work_s = once_s / work;
  once_per_work_s_ = once_per_work_s_ > 0.0 ? std::min(once_per_work_s_, per_work_s) : per_work_s;
  const double left_s = -world_.max(-(end_s_ - now_s()));
  const double share_s =
      std::min(max_measurement_s, left_s / static_cast<double>(std::max<int64_t>(1, items_)));
  --items_;
  const int calls =
      prepare ? 1 : static_cast<int>(std::clamp(std::ceil(sample_s / once_s), 1.0, max_calls));
  const double count =
      std::clamp(share_s / (calls * once_s + prepared_s), min_samples(once_s), max_samples);
  std::vector<double> samples;
  if (calls == 1) samples.push_back(slowest ? once_s : second_s);
  // A rank that stalls must not take the time of the others; where all go together, all see the
  // same times.
  double spent_s = 0.0;
  for (auto taken = static_cast<double>(samples.size());
       taken < min_samples(once_s) || (taken < count && spent_s < 2.0 * share_s); taken += 1.0) {
    if (slowest) world_.barrier();
    if (prepare) prepare();
    const double start_s = now_s();
    for (int i = 0; i < calls; ++i) call();
    queue.synchronize();
    const double mine_s = now_s() - start_s, sample_time_s = slowest ? world_.max(mine_s) : mine_s;
    spent_s += sample_time_s + prepared_s;
    samples.push_back(sample_time_s / calls);
  }
  return CallTime{median(samples), spread_of(samples)};
}

void TimeShare::leave_out(int64_t items, double work) {
  left_out_.insert(left_out_.end(), static_cast<size_t>(items), work);
  items_ -= items;
}

LeftOut TimeShare::left_out() const {
  LeftOut all;
  for (const double work : left_out_) {
    const double once_s = work * once_per_work_s_;
    ++all.items;
    if (work > 0.0) all.time_s += min_calls(once_s) * (once_s + prepared_s_);
  }
  return all;
}

}  // namespace gptbench
