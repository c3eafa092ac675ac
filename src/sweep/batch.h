// The global batch of a sweep's row, where it is not set by its own key.
#pragma once

#include <cstdint>

#include "sweep/sweep.h"

namespace gptbench {

// Sets batch.global_batch_size [sequences] of a row whose ranks are known. 0: not set.
//   tokens        per step: global_batch_size = tokens / seq_length, rounded down
//   accumulation  micro-batches per step and replica:
//                 global_batch_size = micro_batch_size x data-parallel replicas x accumulation
// Throws Error(Exit::usage) where more than one of the three is given, and where no sequence fits.
void set_global_batch(SweepRow& row, int64_t tokens, int64_t accumulation);

}  // namespace gptbench
