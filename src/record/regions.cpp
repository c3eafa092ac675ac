#include "record/regions.h"

#include <algorithm>
#include <numeric>

#include "record/steps.h"

namespace gptbench {

std::vector<double> timed_steps(const Record& record, const RankSeries& series, int64_t column) {
  std::vector<double> timed;
  for (int64_t step = 0; step < series.steps; ++step)
    if (is_timed(record, step))
      timed.push_back(series.values[static_cast<size_t>(step * series.ranks + column)]);
  return timed;
}

double mean_time_s(const Record& record, const RankSeries& series, int64_t column) {
  const std::vector<double> steps = timed_steps(record, series, column);
  if (steps.empty()) return 0.0;
  return std::accumulate(steps.begin(), steps.end(), 0.0) / static_cast<double>(steps.size());
}

bool is_region(const RankSeries& series) {
  return series.name.rfind(region_prefix, 0) == 0;
}

std::string region_of(const RankSeries& series) {
  return is_region(series) ? series.name.substr(std::string(region_prefix).size()) : series.name;
}

namespace {

bool is_whole_step(const RankSeries& series) {
  return series.name == "step";
}

}  // namespace

std::vector<double> computing_times(const Record& record) {
  const RankSeries *step = nullptr, *communication = nullptr;
  for (const RankSeries& series : record.timing) {
    if (is_whole_step(series)) step = &series;
    if (series.name == "communication") communication = &series;
  }
  if (step == nullptr) return {};
  if (step->reduced) return record.rank_computing_s;
  if (communication != nullptr && communication->values.size() != step->values.size()) return {};
  RankSeries computing = *step;
  for (size_t i = 0; communication != nullptr && i < computing.values.size(); ++i)
    computing.values[i] -= communication->values[i];
  std::vector<double> times;
  for (int64_t rank = 0; rank < step->ranks; ++rank) {
    const std::vector<double> steps = timed_steps(record, computing, rank);
    if (steps.empty()) return {};
    times.push_back(median(steps));
  }
  return times;
}

Breakdown slowest_rank(const Record& record) {
  Breakdown breakdown;
  if (record.timing.empty()) return breakdown;
  const bool reduced = record.timing.front().reduced;
  const int64_t ranks = record.timing.front().ranks;
  for (const RankSeries& series : record.timing)
    if (series.ranks != ranks || series.reduced != reduced) return breakdown;
  if (ranks < 1 || timed_steps(record, record.timing.front(), 0).empty()) return breakdown;
  const bool has_steps = std::any_of(record.timing.begin(), record.timing.end(), is_whole_step);
  int64_t column = reduction::maximum;
  if (!reduced) {
    double longest = -1.0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      double total = 0.0;
      for (const RankSeries& series : record.timing)
        if (!has_steps || is_whole_step(series)) total += mean_time_s(record, series, rank);
      if (total > longest) {
        longest = total;
        column = breakdown.rank = rank;
      }
    }
  }
  if (ranks <= column) return breakdown;
  breakdown.step_s = record.summary.rate.sec_per_it;
  for (const RankSeries& series : record.timing) {
    const double time_s = mean_time_s(record, series, column);
    if (is_whole_step(series)) breakdown.step_s = time_s;
    breakdown.regions.push_back({series.name, time_s});
  }
  return breakdown;
}

}  // namespace gptbench
