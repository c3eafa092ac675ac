// How the sequences of a step are dealt to data-parallel ranks and cut into micro-batches.
#pragma once

#include <cstdint>
#include <utility>
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
struct MicroBatches {
  MicroBatches() = default;
  MicroBatches(int64_t global_batch, int64_t data_parallel, int64_t data_rank, int64_t micro_batch);

  int64_t size() const { return number; }
  SequenceRange operator[](int64_t k) const;
  // Full micro-batches come first. At most two follow: one of what is left, one empty.
  int64_t full() const { return share.count / each; }
  // Runs of equal sequence counts, in order: {sequences of a micro-batch, micro-batches}.
  std::vector<std::pair<int64_t, int64_t>> runs() const;
  // A step of `full_ones` full micro-batches, with the rows of this one.
  MicroBatches step_of(int64_t full_ones) const;

  SequenceRange share;  // sequences of this rank
  int64_t each = 1;     // sequences of a full micro-batch
  int64_t number = 0;
  // What buffers are sized by: B T of the largest micro-batch of any rank, T the positions that a
  // rank holds.
  int64_t rows = 0;
};

}  // namespace gptbench
