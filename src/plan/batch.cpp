#include "plan/batch.h"

#include <algorithm>

#include "base/units.h"

namespace gptbench {

SequenceRange sequences_of(int64_t global_batch, int64_t data_parallel, int64_t data_rank) {
  const int64_t share = global_batch / data_parallel;
  const int64_t extra = global_batch % data_parallel;
  return {data_rank * share + std::min(data_rank, extra), share + (data_rank < extra ? 1 : 0)};
}

std::vector<SequenceRange> micro_batches_of(int64_t global_batch, int64_t data_parallel,
                                            int64_t data_rank, int64_t micro_batch) {
  const SequenceRange mine = sequences_of(global_batch, data_parallel, data_rank);
  const int64_t largest_share = ceil_div(global_batch, data_parallel);
  std::vector<SequenceRange> micro_batches;
  for (int64_t first = 0; first < largest_share; first += micro_batch) {
    const int64_t count = std::clamp<int64_t>(mine.count - first, 0, micro_batch);
    micro_batches.push_back({mine.first + first, count});
  }
  return micro_batches;
}

}  // namespace gptbench
