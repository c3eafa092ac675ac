#include "post/run_deck.h"

#include <algorithm>

namespace gptbench {

int64_t RunDeck::data_parallel() const {
  const int64_t stated = integer("parallel", "data_parallel", 0);
  if (stated > 0) return stated;
  int64_t left = record_->summary.world_size;
  for (const int64_t axis : {tensor_parallel(), pipeline_parallel(), context_parallel()}) {
    if (axis <= 0) return 1;
    left /= axis;
  }
  return std::max<int64_t>(1, left);
}

int64_t RunDeck::global_batch() const {
  const int64_t stated = integer("batch", "global_batch_size", 0);
  int64_t at_once = 0;  // files hold any number
  if (stated <= 0 && __builtin_mul_overflow(micro_batch(), data_parallel(), &at_once)) return 0;
  return stated > 0 ? stated : at_once;
}

int64_t RunDeck::gradient_accumulation() const {
  if (micro_batch() <= 0) return 0;
  // One after the other: their product may be beyond 64 bits.
  const auto rounded_up = [](int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); };
  return rounded_up(rounded_up(global_batch(), micro_batch()), data_parallel());
}

std::string RunDeck::checkpointing() const {
  return text("memory", "activation_checkpointing", name_of(Recompute::none));
}

std::string RunDeck::checkpointing_cell() const {
  if (!checkpoints()) return "False";
  return full_checkpointing() ? "True" : checkpointing();
}

}  // namespace gptbench
