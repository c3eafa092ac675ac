#include "io/reduce.h"

#include <algorithm>
#include <numeric>

#include "record/steps.h"

namespace gptbench {
namespace {

void reduce(RankSeries& series) {
  if (series.ranks <= max_ranks_in_full) return;
  std::vector<double> reduced;
  for (int64_t step = 0; step < series.steps; ++step) {
    const auto first = series.values.begin() + step * series.ranks;
    const auto last = first + series.ranks;
    const auto largest = std::max_element(first, last);
    const double rank_of_largest = static_cast<double>(largest - first);
    reduced.insert(reduced.end(), {*std::min_element(first, last), median({first, last}), *largest,
                                   rank_of_largest});
  }
  series.values = std::move(reduced);
  series.ranks = 4;
  series.reduced = true;
}

template <class T>
void sum(std::vector<T>& values) {
  if (!values.empty()) values = {std::accumulate(values.begin(), values.end(), T{0})};
}

}  // namespace

Record reduced_over_ranks(Record record) {
  for (RankSeries& series : record.timing) reduce(series);
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
