#include "post/run_deck.h"

#include <algorithm>

#include "base/units.h"

namespace gptbench {

int64_t RunDeck::data_parallel() const {
  const int64_t stated = integer("parallel", "data_parallel", 0);
  if (stated > 0) return stated;
  const int64_t others = tensor_parallel() * pipeline_parallel() * context_parallel();
  return others > 0 ? std::max<int64_t>(1, record_->summary.world_size / others) : 1;
}

int64_t RunDeck::global_batch() const {
  const int64_t stated = integer("batch", "global_batch_size", 0);
  return stated > 0 ? stated : micro_batch() * data_parallel();
}

int64_t RunDeck::gradient_accumulation() const {
  const int64_t at_once = micro_batch() * data_parallel();
  return at_once > 0 ? ceil_div(global_batch(), at_once) : 0;
}

std::string RunDeck::checkpointing() const {
  return text("memory", "activation_checkpointing", name_of(Recompute::none));
}

std::string RunDeck::checkpointing_cell() const {
  if (!checkpoints()) return "False";
  return full_checkpointing() ? "True" : checkpointing();
}

}  // namespace gptbench
