// What a run tells of the checkpoints that it wrote.
#include "checkpoint/checkpoints.h"

#include "saved_run.h"

namespace gptbench {
namespace {

class WrittenCheckpoints : public CheckpointTest {};

// No time is expected of the machine: a mean is at most the longest of its terms, each of which
// training has waited for, while the sum of four is not.
TEST_F(WrittenCheckpoints, TheTimeOfWritingIsTheMean) {
  Config config = SavedRun::config_of("L1 host dp" + std::to_string(world.size()), directory());
  config.checkpoint.every_steps = 1;
  config.checkpoint.async = false;
  SavedRun run(world, config);
  Checkpoints checkpoints(world, run.engine(), OwnCheckpoints());
  EXPECT_EQ(checkpoints.write_s(), 0.0);
  for (int64_t step = 1; step <= 4; ++step) {
    run.train(1);
    checkpoints.after_step(step, false, [] { return true; });
    EXPECT_EQ(checkpoints.completed(), step);
  }
  EXPECT_GT(checkpoints.write_s(), 0.0);
  EXPECT_LE(checkpoints.write_s(), checkpoints.longest_s());
}

}  // namespace
}  // namespace gptbench
