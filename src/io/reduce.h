// Reduction of per-rank figures of large runs.
#pragma once

#include "record/record.h"

namespace gptbench {

constexpr int64_t max_ranks_in_full = 1024;

// The record as a file keeps it: up to 1,024 ranks unchanged. Beyond, a series [step, rank] becomes
// [step, 4] with minimum, median, maximum and the (first) rank of the maximum, and figures [rank]
// of memory and communication become one value, their sum over ranks. Figures that are
// already marked `reduced` stay as they are.
Record reduced_over_ranks(Record record);

}  // namespace gptbench
