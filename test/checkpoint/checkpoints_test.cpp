// What a run tells of the checkpoints that it wrote.
#include "checkpoint/checkpoints.h"

#include "saved_run.h"
#include "weights/contents.h"

namespace gptbench {
namespace {

// The checkpoints of a run that fit, to a byte: `wanted` of them beside those that exist.
void expect_room_for(int64_t wanted, const Config& config, int64_t existing) {
  double bytes = 0.0;
  for (const FileArray& array : contents_of(config)) bytes += static_cast<double>(array.bytes());
  const double needed = static_cast<double>(wanted) * bytes;
  EXPECT_EQ(missing_space(config, existing, needed), "");
  const std::string warning = missing_space(config, existing, needed - 1.0);
  EXPECT_NE(warning.find(" free, " + std::to_string(wanted) + " x "), std::string::npos) << warning;
}

TEST(CheckpointSpace, ThoseThatAreKeptAndOneMore) {
  Config config = SavedRun::config_of("L1 host dp1", "ck");
  config.run.steps = 100;
  config.checkpoint.keep = 2;
  config.checkpoint.every_steps = 10;
  expect_room_for(3, config, 0);
  expect_room_for(1, config, 2);  // of a run that is continued
  expect_room_for(1, config, 5);
  config.checkpoint.every_steps = 99;
  expect_room_for(2, config, 0);  // after steps 99 and 100
  config.checkpoint.every_steps = 100;
  expect_room_for(1, config, 0);
  config.checkpoint.every_steps = 0;
  expect_room_for(1, config, 0);  // after the last step
  config.checkpoint.every_s = 600.0;
  expect_room_for(3, config, 0);
  config.checkpoint.every_s = 0.0;
  config.run.limits.duration_s = 600.0;  // however many steps that takes
  expect_room_for(1, config, 0);
  config.checkpoint.every_steps = 100;
  expect_room_for(3, config, 0);
}

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
