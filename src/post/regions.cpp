#include "post/regions.h"

#include <algorithm>

namespace gptbench {

std::vector<double> timed_steps(const RankSeries& series, int64_t column, int64_t warmup_steps) {
  const int64_t first = warmup_steps < series.steps ? std::max<int64_t>(0, warmup_steps) : 0;
  std::vector<double> values;
  for (int64_t step = first; step < series.steps; ++step)
    values.push_back(series.values[static_cast<size_t>(step * series.ranks + column)]);
  return values;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const size_t upper = values.size() / 2;
  return values.size() % 2 == 1 ? values[upper] : 0.5 * (values[upper - 1] + values[upper]);
}

namespace {

bool is_whole_step(const RankSeries& series) {
  return series.name == "step";
}

}  // namespace

Breakdown slowest_rank(const Record& record) {
  Breakdown breakdown;
  if (record.timing.empty()) return breakdown;
  const bool reduced = record.timing.front().reduced;
  const int64_t ranks = record.timing.front().ranks;
  for (const RankSeries& series : record.timing)
    if (series.ranks != ranks || series.reduced != reduced) return breakdown;
  const auto time_of = [&](const RankSeries& series, int64_t column) {
    return median_of(timed_steps(series, column, record.warmup_steps));
  };
  int64_t column = 2;  // the maximum, of the four reductions
  if (!reduced) {
    const bool has_steps = std::any_of(record.timing.begin(), record.timing.end(), is_whole_step);
    double longest = -1.0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      double total = 0.0;
      for (const RankSeries& series : record.timing)
        if (!has_steps || is_whole_step(series)) total += time_of(series, rank);
      if (total > longest) {
        longest = total;
        column = breakdown.rank = rank;
      }
    }
  }
  if (ranks <= column) return breakdown;
  for (const RankSeries& series : record.timing)
    breakdown.regions.push_back({series.name, time_of(series, column)});
  return breakdown;
}

}  // namespace gptbench
