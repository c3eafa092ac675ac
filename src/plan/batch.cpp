#include "plan/batch.h"

#include <algorithm>

#include "base/units.h"

namespace gptbench {

SequenceRange sequences_of(int64_t global_batch, int64_t data_parallel, int64_t data_rank) {
  const int64_t share = global_batch / data_parallel;
  const int64_t extra = global_batch % data_parallel;
  return {data_rank * share + std::min(data_rank, extra), share + (data_rank < extra ? 1 : 0)};
}

MicroBatches::MicroBatches(int64_t global_batch, int64_t data_parallel, int64_t data_rank,
                           int64_t micro_batch)
    : share(sequences_of(global_batch, data_parallel, data_rank)),
      each(micro_batch),
      number(ceil_div(ceil_div(global_batch, data_parallel), micro_batch)) {}

SequenceRange MicroBatches::operator[](int64_t k) const {
  return {share.first + k * each, std::clamp<int64_t>(share.count - k * each, 0, each)};
}

std::vector<std::pair<int64_t, int64_t>> MicroBatches::runs() const {
  std::vector<std::pair<int64_t, int64_t>> runs;
  if (full() > 0) runs.push_back({each, full()});
  for (int64_t k = full(); k < number; ++k) runs.push_back({(*this)[k].count, 1});
  return runs;
}

MicroBatches MicroBatches::step_of(int64_t full_ones) const {
  MicroBatches step = *this;
  step.share = {0, full_ones * each};
  step.number = full_ones;
  return step;
}

}  // namespace gptbench
