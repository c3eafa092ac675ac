// Reduction of per-rank figures of large runs.
#pragma once

#include "record/record.h"

namespace gptbench {

constexpr int64_t max_ranks_in_full = 1024;
// Of a series. A record has less than twenty, and files of more than 1 GiB are not read.
constexpr int64_t max_values_in_full = 4'000'000;

// The record as a file keeps it: up to 1,024 ranks unchanged. Beyond, and where it has more than
// max_values_in_full, a series [step, rank] becomes
// [step, 4] with minimum, median, maximum and the (first) rank of the maximum, and figures [rank]
// of memory and communication become one value, their sum over ranks. Figures that are
// already marked `reduced` stay as they are.
Record reduced_over_ranks(Record record);

}  // namespace gptbench
