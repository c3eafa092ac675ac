// How the sequences of a step are dealt to data-parallel ranks and cut into micro-batches.
#pragma once

#include <cstdint>
#include <vector>

namespace gptbench {

// Sequences first .. first + count - 1 of the global batch.
struct SequenceRange {
  int64_t first = 0, count = 0;
};

// Share of `data_rank`: ranks differ by at most one sequence, the first ranks hold the extra ones.
// Example: 10 sequences over 4 ranks are 3, 3, 2, 2; rank 2 holds {6, 7}.
SequenceRange sequences_of(int64_t global_batch, int64_t data_parallel, int64_t data_rank);

// Micro-batches of one rank: 48 sequences by 11 are 11, 11, 11, 11, 4. All ranks have the same
// number of micro-batches (collectives must match), so where shares differ a rank's last may be
// empty: 3 sequences over 2 ranks by 1 are {0}, {1} on rank 0 and {2}, {} on rank 1.
std::vector<SequenceRange> micro_batches_of(int64_t global_batch, int64_t data_parallel,
                                            int64_t data_rank, int64_t micro_batch);

}  // namespace gptbench
