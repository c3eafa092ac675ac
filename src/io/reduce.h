// Reduction of per-rank figures of large runs.
#pragma once

#include "record/record.h"

namespace gptbench {

constexpr int64_t max_ranks_in_full = 1024;
// Values of one series [step, rank] of more than four ranks. A record has fewer than twenty series,
// which have to fit into largest_result_bytes (io/result_file.h).
constexpr int64_t max_values_in_full = 4'000'000;

// The record as a file keeps it: up to 1,024 ranks unchanged. Beyond, and where it has more than
// max_values_in_full, a series [step, rank] becomes
// [step, 4] with minimum, median, maximum and the (first) rank of the maximum, and figures [rank]
// of memory and communication become one value, their sum over ranks (of integers 0, not known,
// where 64 bits do not hold it). Beside series that are reduced here, rank_computing_s is kept.
// Figures that are already marked `reduced` stay as they are.
Record reduced_over_ranks(Record record);
// Whether it reduces series of so many values,
bool is_reduced_over_ranks(int64_t steps, int64_t ranks);
// and how, whatever their number.
void reduce_over_ranks(RankSeries& series);

}  // namespace gptbench
