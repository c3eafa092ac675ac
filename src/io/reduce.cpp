#include "io/reduce.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "record/regions.h"
#include "record/steps.h"

namespace gptbench {
namespace {

void sum(std::vector<double>& values) {
  if (!values.empty()) values = {std::accumulate(values.begin(), values.end(), 0.0)};
}
// 0, which stands for "not known", where no integer of 64 bits holds the sum.
void sum(std::vector<int64_t>& values) {
  int64_t total = 0;
  for (const int64_t value : values)
    if (__builtin_add_overflow(total, value, &total)) {
      total = 0;
      break;
    }
  if (!values.empty()) values = {total};
}

}  // namespace

bool is_reduced_over_ranks(int64_t steps, int64_t ranks) {
  return ranks > reduction::number &&
         (ranks > max_ranks_in_full || steps * ranks > max_values_in_full);
}

void reduce_over_ranks(RankSeries& series) {
  std::vector<double> reduced;
  for (int64_t step = 0; step < series.steps; ++step) {
    const auto first = series.values.begin() + step * series.ranks;
    const auto last = first + series.ranks;
    const auto largest = std::max_element(first, last);
    double values[reduction::number];
    values[reduction::minimum] = *std::min_element(first, last);
    values[reduction::median] = median({first, last});
    values[reduction::maximum] = *largest;
    values[reduction::rank_of_maximum] = static_cast<double>(largest - first);
    reduced.insert(reduced.end(), std::begin(values), std::end(values));
  }
  series.values = std::move(reduced);
  series.ranks = reduction::number;
  series.reduced = true;
}

Record reduced_over_ranks(Record record) {
  const auto is_too_large = [](const RankSeries& series) {
    return !series.reduced && is_reduced_over_ranks(series.steps, series.ranks);
  };
  if (std::any_of(record.timing.begin(), record.timing.end(), is_too_large))
    record.rank_computing_s = computing_times(record);
  for (RankSeries& series : record.timing)
    if (is_too_large(series)) reduce_over_ranks(series);
  for (std::vector<MemoryEntry>* entries : {&record.memory, &record.offload})
    for (MemoryEntry& entry : *entries) {
      if (static_cast<int64_t>(entry.bytes.size()) <= max_ranks_in_full) continue;
      sum(entry.bytes);
      entry.reduced = true;
    }
  for (CommEntry& entry : record.comm) {
    if (static_cast<int64_t>(entry.bytes.size()) <= max_ranks_in_full) continue;
    sum(entry.bytes);
    sum(entry.count);
    sum(entry.least_s);
    sum(entry.time_s);
    sum(entry.exposed_s);
    entry.reduced = true;
  }
  return record;
}

}  // namespace gptbench
