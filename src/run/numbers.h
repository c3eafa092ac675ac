// Wrong numbers, and where they come from. All functions are collective, and return text on rank 0.
#pragma once

#include <functional>
#include <string>

#include "comm/mpi_world.h"
#include "engine/engine.h"

namespace gptbench {

// Where the numbers of `step`, from 0 and the last one executed, ceased to be finite: "; first on
// rank 1 on alpha: tensor h.1.mlp.fc.weight of the weights, 2 ranks in all".
std::string origin_of_non_finite(MpiWorld& world, Engine& engine, int64_t step);

// Which ranks hold other weights than the replicas of their part of the model, by tensor; the rank
// that differs from most, or all where there are two: "rank 1 on alpha differs in h.0.mlp.fc.weight
// (and 2 more tensors)". "" where replicas agree; `agree` says so on all ranks.
struct ReplicaCheck {
  bool agree = true;
  std::string differences;
};
ReplicaCheck compare_replicas(MpiWorld& world, Engine& engine);
// The same where replicas are known to differ.
std::string differences_of_replicas(MpiWorld& world, Engine& engine);

// Repeats the steps from the newest checkpoint to `last_step`, from 0, after which replicas
// differed: whether they differ again. Where there is no checkpoint it says so.
std::string repeat_from_checkpoint(MpiWorld& world, Engine& engine, int64_t last_step,
                                   const std::function<void(const std::string&)>& say);

}  // namespace gptbench
