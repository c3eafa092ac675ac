// Which ranks of a run are slow, and what the others wait for them.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/sort_numbers.h"
#include "plan/batch.h"
#include "post/explain_parts.h"
#include "record/regions.h"
#include "record/steps.h"

namespace gptbench {
namespace {

// Seconds that each rank computes in each timed step, [rank][step]; of reduced series none.
std::vector<std::vector<double>> computing_of(const Record& record) {
  std::vector<std::vector<double>> computing;
  for (const RankSeries& series : record.timing) {
    if (!is_region(series) || series.reduced) continue;
    computing.resize(std::max(computing.size(), static_cast<size_t>(series.ranks)));
    for (int64_t rank = 0; rank < series.ranks; ++rank) {
      const std::vector<double> steps = timed_steps(record, series, rank);
      std::vector<double>& sums = computing[static_cast<size_t>(rank)];
      sums.resize(std::max(sums.size(), steps.size()));
      for (size_t step = 0; step < steps.size(); ++step) sums[step] += steps[step];
    }
  }
  return computing;
}

// The middle one; of an even number the lower of the two.
double lower_median(std::vector<double> values) {
  sort_numbers(values);
  return values[(values.size() - 1) / 2];
}

// A rank and its host.
SlowRank named(const Record& record, int64_t rank) {
  const auto& hosts = record.provenance.hostnames;
  SlowRank slow;
  slow.rank = rank;
  slow.host =
      static_cast<size_t>(rank) < hosts.size() ? hosts[static_cast<size_t>(rank)] : "its host";
  return slow;
}

// Ranks with equal work: those that are slow are added.
void add_slow(const Record& record, const std::vector<std::vector<double>>& computing,
              const std::vector<int64_t>& equals, StepAccount& account) {
  const size_t steps = computing.front().size();
  const auto of_step = [&](size_t step) {
    std::vector<double> times;
    for (const int64_t rank : equals) times.push_back(computing[static_cast<size_t>(rank)][step]);
    return lower_median(times);
  };
  std::vector<double> middle;
  for (size_t step = 0; step < steps; ++step) middle.push_back(of_step(step));
  std::vector<double> fastest_s;  // of each of these ranks
  for (const int64_t rank : equals)
    fastest_s.push_back(mean_of_smallest(fastest_share, computing[static_cast<size_t>(rank)]));
  const double usual_fastest_s = lower_median(fastest_s);
  for (size_t place = 0; place < equals.size(); ++place) {
    const int64_t rank = equals[place];
    const std::vector<double>& own = computing[static_cast<size_t>(rank)];
    size_t slow_steps = 0;
    for (size_t step = 0; step < steps; ++step)
      slow_steps += own[step] > slow_factor * middle[step] ? 1 : 0;
    const bool mostly = static_cast<double>(slow_steps) >= slow_share * static_cast<double>(steps);
    if (!mostly && fastest_s[place] <= slow_factor * usual_fastest_s) continue;
    SlowRank slow = named(record, rank);
    slow.computing_s = median(own);
    slow.median_s = median(middle);
    slow.slow_steps = slow_steps;
    slow.steps = steps;
    slow.fastest_ratio = fastest_s[place] / usual_fastest_s;
    account.slow.push_back(slow);
  }
}

// The same by the medians over steps that a file keeps beside reduced series.
void add_slow_by_median(const Record& record, const std::vector<int64_t>& equals,
                        StepAccount& account) {
  const auto time_s = [&](int64_t rank) {
    return record.rank_computing_s[static_cast<size_t>(rank)];
  };
  std::vector<double> times;
  for (const int64_t rank : equals) times.push_back(time_s(rank));
  const double median_s = lower_median(times);
  for (const int64_t rank : equals) {
    if (!(time_s(rank) > slow_factor * median_s)) continue;  // or not a number
    SlowRank slow = named(record, rank);
    slow.computing_s = time_s(rank);
    slow.median_s = median_s;
    account.slow.push_back(slow);
  }
}

// Ranks with equal work: of one stage, with equal shares of the batch.
std::vector<std::vector<int64_t>> equal_ranks(const Plan& plan) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> groups;
  for (int64_t rank = 0; rank < plan.grid.size(); ++rank) {
    const Coordinates at = plan.grid.coordinates_of(rank);
    const SequenceRange share =
        sequences_of(plan.config.batch.global_batch_size, plan.grid.data, at.data);
    groups[{at.pipeline, share.count}].push_back(rank);
  }
  std::vector<std::vector<int64_t>> all;
  for (auto& [work, ranks] : groups) all.push_back(std::move(ranks));
  return all;
}

// `times`: of each rank.
void account_imbalance(const std::vector<double>& times, StepAccount& account) {
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  const double most = *std::max_element(times.begin(), times.end());
  account.imbalance_s =
      std::min(account.communication_s, most - sum / static_cast<double>(times.size()));
}

}  // namespace

void account_ranks(const Record& record, const Plan& plan, StepAccount& account) {
  const auto ranks = static_cast<size_t>(plan.grid.size());
  const bool has_medians = account.reduced && record.rank_computing_s.size() == ranks;
  account.ranks_unknown = account.reduced && !has_medians;
  const std::vector<std::vector<double>> computing = computing_of(record);
  if (has_medians) {
    account_imbalance(record.rank_computing_s, account);
  } else {
    if (computing.size() != ranks || computing.front().empty()) return;
    const std::vector<size_t> steps = usual_steps(record);
    std::vector<double> times;
    for (const std::vector<double>& own : computing) {
      if (own.size() != computing.front().size()) return;  // a file of another program
      times.push_back(mean_over_steps(own, steps));
    }
    account_imbalance(times, account);
  }
  for (const std::vector<int64_t>& equals : equal_ranks(plan)) {
    account.names_ranks = account.names_ranks || equals.size() > 1;
    if (has_medians)
      add_slow_by_median(record, equals, account);
    else
      add_slow(record, computing, equals, account);
  }
}

}  // namespace gptbench
