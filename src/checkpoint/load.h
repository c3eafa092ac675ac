// Finding a checkpoint and starting from it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "comm/mpi_world.h"
#include "engine/engine.h"

namespace gptbench {

// The checkpoints that a run may remove: those that it has written, and those of the run that it
// continues. By CheckpointFiles::stem, on rank 0.
struct OwnCheckpoints {
  std::set<std::string> all;
  std::set<std::string> damaged;  // which were passed over: not among those that are kept
};

// Where training starts; the same on all ranks, but for `own`.
struct TrainingStart {
  std::string path;                  // of the checkpoint that training continues from; "": none
  int64_t steps = 0;                 // that were executed before
  int64_t sequences = 0;             // of these steps
  double steps_s = 0.0;              // their time, of the slowest rank; 0: not known
  bool fresh = true;                 // the weights are those of a new model
  std::vector<std::string> changed;  // "optimizer.lr = 0.0003 (was 0.0006)": training_keys()
  OwnCheckpoints own;
};

// Collective, with the weights initialised. Follows run.resume and run.init_from: continues from
// the newest checkpoint that is complete and undamaged, or takes the weights of one; saved with
// another layout or in another precision as well. `say` is called on rank 0 with a line for each
// checkpoint that is passed over, and why.
// Throws AgreedError(Exit::io) where a checkpoint was requested and none can be used, or one is of
// another model; the message names the keys.
TrainingStart start_training(MpiWorld& world, Engine& engine,
                             const std::function<void(const std::string&)>& say);

// Collective. Continues from the newest usable checkpoint of `path`, in the middle of a run too;
// false where there is none at all. Throws as start_training() does.
bool load_newest(MpiWorld& world, Engine& engine, const std::string& path,
                 const std::function<void(const std::string&)>& say, TrainingStart& start);

}  // namespace gptbench
