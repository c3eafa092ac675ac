// What is saved with one layout of ranks and in one precision is loaded with others; the same one
// continues bit by bit.
#include <cmath>

#include "engine/fp8_scaling.h"
#include "saved_run.h"

namespace gptbench {
namespace {

struct Pair {
  const char *saved, *loaded;
};

// The state of `loaded` holds that of `saved` exactly: its masters and moments are no shorter.
constexpr Pair pairs[] = {
    // one rank
    {"host", "host optimizer,parameters file"},
    {"host bf16", "host fp16 optimizer"},
    {"host bf16 nomaster o16", "host fp32"},
    {"host fp32 full", "ref fp64"},
    {"host fp8", "host fp8 optimizer,parameters"},
    // two
    {"dp2 host", "tp2 host"},
    {"tp2 host sp", "pp2 host"},
    {"pp2 host zero_bubble", "cp2 host zero3"},
    {"dp2 zero1 host bf16", "dp2 zero3 host fp16"},
    {"dp2 zero2 host bf16 nomaster", "pp2 v2 host bf16"},
    {"dp2 zero3 host optimizer,parameters file", "tp2 host"},
    {"pp2 host fp8", "tp2 host fp8"},
    {"dp2 zero1 host fp16 optimizer hoststep", "dp2 zero2 host bf16 w32"},
    // four
    {"dp4 host", "tp4 host"},
    {"tp2 dp2 zero1 host", "pp2 cp2 host"},
    {"pp4 host", "dp4 zero3 host optimizer,parameters"},
    {"cp2 tp2 zero2 host bf16", "pp2 dp2 zero1 host fp16"},
    {"dp4 zero3 group2 host", "dp4 zero1 group2 host det"},
    {"tp4 sp host bf16 nomaster", "pp2 v2 tp2 host fp32"},
    {"pp2 tp2 llama host", "dp2 cp2 zero3 llama host"},
    {"dp2 pp2 bert padded host", "tp2 dp2 bert padded zero2 host"},
    {"dp4 zero2 host fp8", "pp4 host fp8"},
};

class Layouts : public CheckpointTest {};

TEST_F(Layouts, AnotherLayoutLoadsTheSameTensors) {
  int tried = 0;
  for (const Pair& pair : pairs) {
    if (combination(pair.saved).ranks() != world.size()) continue;
    SCOPED_TRACE(std::string(pair.saved) + " -> " + pair.loaded);
    const std::string here = directory(std::to_string(++tried)), there = here + "b";
    Config config = SavedRun::config_of(pair.saved, here);
    config.checkpoint.async = tried % 2 == 0;
    SavedRun run(world, config);
    run.train(4);
    const Manifest saved = run.save();
    Config other_config = SavedRun::config_of(pair.loaded, there);
    other_config.run.start.resume = here;
    SavedRun other(world, other_config);
    const TrainingStart start = other.load();
    EXPECT_EQ(start.steps, 4);
    EXPECT_FALSE(start.fresh);
    const Manifest loaded = other.save();
    if (saved.arrays.front().type == loaded.arrays.front().type) expect_same(world, saved, loaded);
    // Arrays of another type have other checksums: back to where they came from.
    Config back_config = SavedRun::config_of(pair.saved, here + "c");
    back_config.run.start.resume = there;
    SavedRun back(world, back_config);
    back.load();
    const Manifest returned = back.save();
    expect_same(world, saved, returned);
    EXPECT_EQ(returned.state.updates, saved.state.updates);
    EXPECT_EQ(returned.state.sequences, saved.state.sequences);
    EXPECT_NEAR(returned.state.steps_s, saved.state.steps_s, 1e-8 * saved.state.steps_s);
    // What follows is the same training, as far as both compute in the same type.
    const std::vector<StepResult> on = run.train(2), over = other.train(2);
    for (size_t i = 0; i < on.size(); ++i)
      EXPECT_NEAR(on[i].loss, over[i].loss, 2e-2 * on[i].loss) << i;
  }
  EXPECT_GE(tried, 5);
}

// A checkpoint of an earlier version does not say how long its steps took; those that follow it
// cannot.
TEST_F(Layouts, AnUnknownTimeOfStepsStaysUnknown) {
  if (world.size() > 1) return;
  SavedRun run(world, "host", directory());
  run.train(2);
  TrainingState state = run.engine().state(2);
  EXPECT_GT(state.steps_s, 0.0);
  state.steps_s = 0.0;
  run.engine().continue_from(state);
  run.train(1);
  EXPECT_EQ(run.engine().state(3).steps_s, 0.0);
}

TEST_F(Layouts, TheSameLayoutContinuesBitByBit) {
  const char* const layouts[] = {
      "host dropout", "host fp16 dropout", "host fp8 dropout", "host bert padded batch7",
      "host optimizer,parameters file bf16",
      // a table of more elements than are written or read at a time (base/pieces.h)
      "L1 batch2 V33000 host",
      // two ranks
      "dp2 zero3 host fp16 dropout", "tp2 host fp8", "pp2 host bf16 nomaster", "cp2 zero1 host",
      // four
      "tp2 pp2 host fp16 dropout", "dp2 pp2 zero1 host fp8", "dp4 zero2 group2 host bf16"};
  int tried = 0;
  for (const char* text : layouts) {
    if (combination(text).ranks() != world.size()) continue;
    SCOPED_TRACE(text);
    const std::string here = directory(std::to_string(++tried));
    SavedRun run(world, text, here);
    run.train(5);
    run.begin_save();  // what is written in the background is the state of now
    const std::vector<StepResult> unbroken = run.train(4);
    run.finish_save();
    SavedRun again(world, text, here);
    EXPECT_EQ(again.load().steps, 5);
    const std::vector<StepResult> resumed = again.train(4);
    for (size_t i = 0; i < unbroken.size(); ++i) {
      EXPECT_EQ(unbroken[i].loss, resumed[i].loss) << i;
      if (!unbroken[i].skipped) {  // else it is not a number
        EXPECT_EQ(unbroken[i].grad_norm, resumed[i].grad_norm) << i;
      }
      EXPECT_EQ(unbroken[i].skipped, resumed[i].skipped) << i;
      EXPECT_EQ(unbroken[i].loss_scale, resumed[i].loss_scale) << i;
    }
    const Manifest first = run.save(), second = again.save();
    expect_same(world, first, second);
  }
  EXPECT_GE(tried, 3);
}

// A shorter history of fp8 leaves out the oldest steps, a longer one begins with zeros.
TEST_F(Layouts, HistoriesOfAnotherLengthEndWithTheLatestSteps) {
  Config config = SavedRun::config_of("L1 host fp8 dp" + std::to_string(world.size()), directory());
  SavedRun run(world, config);
  run.train(4);
  run.save();
  const std::vector<Fp8Scaling> saved = read_fp8_scaling(run.engine().resources());
  ASSERT_FALSE(saved.empty());
  for (const int64_t history : {2, 5}) {
    config.precision.fp8_amax_history = history;
    SavedRun other(world, config);
    EXPECT_EQ(other.load().steps, 4);
    const std::vector<Fp8Scaling> loaded = read_fp8_scaling(other.engine().resources());
    ASSERT_EQ(loaded.size(), saved.size());
    for (size_t i = 0; i < saved.size(); ++i) {
      const std::vector<float>& amax = saved[i].amax;
      ASSERT_EQ(amax.size(), 3u);
      EXPECT_EQ(loaded[i].scale, saved[i].scale) << saved[i].name;
      const std::vector<float> two = {amax[1], amax[2]},
                               five = {0.0f, 0.0f, amax[0], amax[1], amax[2]};
      EXPECT_EQ(loaded[i].amax, history == 2 ? two : five) << saved[i].name;
    }
  }
}

// Sequences that were trained on are not trained on again, whatever a step is now.
TEST_F(Layouts, AnotherBatchContinuesWhereTheDataWere) {
  const std::string layout = "host dp" + std::to_string(world.size());
  SavedRun run(world, layout + " batch8", directory());
  run.train(3);
  run.save();
  SavedRun other(world, layout + " batch4", directory());
  other.load();
  other.train(2);
  EXPECT_EQ(other.engine().state(5).sequences, 3 * 8 + 2 * 4);
}

TEST_F(Layouts, WeightsAloneBeginANewRun) {
  const std::string layout = "host zero1 dp" + std::to_string(world.size());
  SavedRun run(world, layout, directory());
  run.train(3);
  const Manifest saved = run.save();
  Config config = SavedRun::config_of(layout, directory("new"));
  config.run.start.init_from = directory();
  config.run.seed = 7;
  config.model.seq_length /= 2;  // the positions that are left have the weights of before
  SavedRun fresh(world, config);
  const TrainingStart start = fresh.load();
  EXPECT_EQ(start.steps, 0);
  EXPECT_EQ(start.path, "");
  EXPECT_FALSE(start.fresh);
  EXPECT_EQ(fresh.engine().state(0).updates, 0);
  const Manifest loaded = fresh.save();
  if (world.rank() != 0) return;
  for (size_t i = 0; i < saved.arrays.size(); ++i) {
    const bool weight = saved.arrays[i].name.find("weights/") == 0;
    if (saved.arrays[i].name == "weights/wpe")
      EXPECT_NE(saved.arrays[i].checksum, loaded.arrays[i].checksum);
    else if (weight)
      EXPECT_EQ(saved.arrays[i].checksum, loaded.arrays[i].checksum) << saved.arrays[i].name;
    else
      EXPECT_NE(saved.arrays[i].checksum, loaded.arrays[i].checksum) << saved.arrays[i].name;
  }
}

// A run whose fixed scale overflows is continued with a smaller one.
TEST_F(Layouts, AFixedLossScaleIsThatOfTheDeck) {
  Config config = SavedRun::config_of("host fp16 dp" + std::to_string(world.size()), directory());
  config.precision.loss_scale = 64.0;
  SavedRun run(world, config);
  EXPECT_EQ(run.train(1)[0].loss_scale, 64.0);
  run.save();
  config.precision.loss_scale = 16.0;
  SavedRun again(world, config);
  again.load();
  EXPECT_EQ(again.train(1)[0].loss_scale, 16.0);
}

// Trained weights are larger than what is estimated for fresh ones.
TEST_F(Layouts, Fp8BeginsWithScalesThatCutNothingOff) {
  const std::string layout = " dp" + std::to_string(world.size());
  SavedRun run(world, "host bf16" + layout, directory());
  run.train(1);
  run.save();
  SavedRun in_fp8(world, "host fp8" + layout, directory());
  in_fp8.load();
  const std::vector<Fp8Scaling> factors = read_fp8_scaling(in_fp8.engine().resources());
  EXPECT_FALSE(factors.empty());
  for (const Fp8Scaling& factor : factors) {
    const bool is_gradient = factor.name.rfind(".dy") == factor.name.size() - 3;
    EXPECT_EQ(factor.scale == 1.0f, !is_gradient) << factor.name << ' ' << factor.scale;
  }
}

TEST_F(Layouts, WhatTrainingDoesOtherwiseIsTold) {
  Config config = SavedRun::config_of("host dp" + std::to_string(world.size()), directory());
  config.optimizer.lr = 0.25;
  SavedRun run(world, config);
  run.train(1);
  run.save();
  config.run.steps += 5;
  SavedRun same(world, config);
  EXPECT_EQ(same.load().changed, std::vector<std::string>{});
  config.optimizer.lr = 0.125;
  config.convergence.lr_schedule = LearningRate::cosine;
  config.convergence.evaluate_every = 1;
  SavedRun other(world, config);
  EXPECT_EQ(other.load().changed,
            (std::vector<std::string>{"optimizer.lr = 0.125 (was 0.25)",
                                      "convergence.lr_schedule = 'cosine' (was 'constant')",
                                      "held_out_sequences = 8 (was 0)"}));
  other.save();
  config.run.steps = 40;
  SavedRun longer(world, config);
  EXPECT_EQ(longer.load().changed.size(), 1u);
}

}  // namespace
}  // namespace gptbench
