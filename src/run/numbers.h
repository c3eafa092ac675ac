// Wrong numbers, and where they come from. All functions are collective, and return text on rank 0.
#pragma once

#include <functional>
#include <string>

#include "comm/mpi_world.h"
#include "engine/engine.h"
#include "record/record.h"

namespace gptbench {

// Where the numbers of `step`, from 0, ceased to be finite. It is the last one executed and has
// changed no weights, so that these come from before: "; first on rank 1 on alpha: tensor
// h.1.mlp.fc.weight of the weights (and on 1 more), which step 12 has not changed: an earlier step
// has, or memory is at fault".
std::string origin_of_non_finite(MpiWorld& world, Engine& engine, int64_t step);
// Where weights are not finite, whichever step has changed them: the same as far as the comma.
std::string place_of_non_finite_weights(MpiWorld& world, Engine& engine);

// The weights of all ranks, which are read once.
struct WeightCheck {
  VerifyEntry replicas;  // check_replicas(), on rank 0
  bool agree = true;     // all replicas hold the same; on all ranks
  bool finite = true;    // on all ranks
  // Which ranks hold other weights than the replicas of their part of the model, by tensor; the
  // rank that differs from most, or all where there are two: "rank 1 on alpha differs in
  // h.0.mlp.fc.weight (and 2 more tensors)"
  std::string differences;
};
WeightCheck check_weights(MpiWorld& world, Engine& engine);

// Repeats the steps from the newest checkpoint to `last_step`, from 0, after which replicas
// differed: whether they differ again. Where there is no checkpoint it says so. Ends early, on all
// ranks, when one received a signal or another step would pass `deadline_s`, by now_s(). `say` is
// called on rank 0 with a line about each checkpoint that is passed over, and before the first
// step.
std::string repeat_from_checkpoint(MpiWorld& world, Engine& engine, int64_t last_step,
                                   double deadline_s,
                                   const std::function<void(const std::string&)>& say);

}  // namespace gptbench
