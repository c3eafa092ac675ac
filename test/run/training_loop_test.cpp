// When a signal or a failure ends the training loop. A rank keeps its first signal, so that one
// test has all cases, and comes last in a program of its own.
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include "base/clock.h"
#include "run/numbers.h"
#include "run/signals.h"
#include "run/training.h"
#include "saved_run.h"

namespace gptbench {
namespace {

class TrainingLoop : public CheckpointTest {
 protected:
  struct Ended {
    Training training;
    int64_t checkpoints = 0;
  };
  Config config_of(const std::string& name, int64_t steps, int64_t warmup_steps) const {
    Config config = SavedRun::config_of("dp2 host", directory(name));
    config.run.steps = steps;
    config.run.warmup_steps = warmup_steps;
    config.run.limits.time_limit_s = 1000.0;
    return config;
  }
  // Collective. `steps` steps, of which the last rank gets SIGTERM in step `signalled`, from 1; 0:
  // in none.
  Ended train_steps(const std::string& name, int64_t steps, int64_t warmup_steps,
                    int64_t signalled) {
    SavedRun run(world, config_of(name, steps, warmup_steps));
    return train_on(run, [&](int64_t step) {
      if (step + 1 == signalled && world.rank() == world.size() - 1) std::raise(SIGTERM);
    });
  }
  // Collective. Calls `after_step` with the number of each step, from 0.
  Ended train_on(SavedRun& run, const std::function<void(int64_t)>& after_step) {
    Resources& resources = run.engine().resources();
    Sensing sensing(world, resources.device);
    Checkpoints checkpoints(world, run.engine(), {});
    TrainingEvents events;
    events.after_step = [&](int64_t step, const StepResult&) { after_step(step); };
    events.after_evaluation = [](const Evaluation&) {};
    Ended ended;
    const double start_s = now_s();
    ended.training = train(world, run.engine(), resources.plan, resources.communicators, sensing,
                           checkpoints, 0, start_s, events);
    EXPECT_LE(ended.training.deadline_s, start_s + 1000.0);  // or the end of a job around the test
    ended.checkpoints = checkpoints.completed();
    return ended;
  }
  void expect_stopped(const Ended& ended, int64_t steps) const {
    EXPECT_EQ(ended.training.steps, steps);
    EXPECT_EQ(ended.training.outcome, Exit::timeout);
    EXPECT_TRUE(ended.training.signalled);
    if (world.rank() == 0) {
      EXPECT_EQ(ended.training.reason, "stopped by signal 15 after the step in hand");
    }
    EXPECT_EQ(ended.checkpoints, 1);
  }
};

// A device of which updates of the weights, the last part of a step, find no memory from some time
// on.
class ShortOfMemoryForUpdates final : public WrappedDevice {
 public:
  ShortOfMemoryForUpdates() : WrappedDevice(make_host_device(DeviceKind::host)) {}
  const KernelTable& kernels(ComputeType compute) const override {
    table_ = WrappedDevice::kernels(compute);
    update = table_.adamw;
    table_.adamw = [](Queue& queue, const AdamW& arguments) {
      if (update_fails) throw std::bad_alloc();
      update(queue, arguments);
    };
    return table_;
  }

  inline static bool update_fails = false;

 private:
  inline static void (*update)(Queue&, const AdamW&) = nullptr;
  mutable KernelTable table_;
};

// Weights that lack an update are not saved, nor called differing replicas; in the last step, too.
TEST_F(TrainingLoop, AFailedUpdateEndsItBeforeACheckpoint) {
  for (const int64_t steps : {4, 3}) {
    Config config = config_of("updates" + std::to_string(steps), steps, 0);
    config.checkpoint.every_steps = 1;
    ShortOfMemoryForUpdates::update_fails = false;
    SavedRun run(world, config, std::make_unique<ShortOfMemoryForUpdates>());
    const Ended ended = train_on(run, [&](int64_t step) {
      ShortOfMemoryForUpdates::update_fails = step == 1 && world.rank() == world.size() - 1;
    });
    EXPECT_EQ(ended.training.outcome, Exit::out_of_memory) << ended.training.reason;
    EXPECT_EQ(ended.training.steps, 3);
    EXPECT_EQ(ended.training.samples.size(), 3u);
    EXPECT_EQ(ended.checkpoints, 2);
  }
}

// Steps may take as long as a launcher waits between its signal and SIGKILL: there is time for one.
TEST_F(TrainingLoop, ASignalToOneRankEndsItOnAllAfterTheStepInHand) {
  watch_signals();
  expect_stopped(train_steps("timed", 6, 1, 3), 3);
  // One that has come before the first step, of the warm-up.
  expect_stopped(train_steps("warmup", 6, 4, 0), 1);
  // In the last step there is nothing to stop.
  const Ended last = train_steps("last", 1, 0, 0);
  EXPECT_EQ(last.training.steps, 1);
  EXPECT_EQ(last.training.outcome, Exit::ok);
  EXPECT_FALSE(last.training.signalled);
  EXPECT_EQ(last.checkpoints, 1);
  // Steps that are repeated after replicas have differed may take hours.
  SavedRun run(world, "dp2 host", directory("timed"));
  const std::string repeated = repeat_from_checkpoint(
      world, run.engine(), 5, std::numeric_limits<double>::infinity(), [](const std::string&) {});
  EXPECT_NE(repeated.find("were cut short after step 3"), std::string::npos) << repeated;
}

}  // namespace
}  // namespace gptbench
