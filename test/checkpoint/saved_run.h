// A small model that is trained, saved and continued through the checkpoint layer.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "checkpoint/load.h"
#include "checkpoint/save.h"
#include "combination.h"
#include "train.h"

namespace gptbench {

// One engine on all ranks of the world; members are collective.
class SavedRun {
 public:
  // `text` as in combination(). Checkpoints lie in `directory`.
  SavedRun(MpiWorld& world, const std::string& text, const std::string& directory)
      : SavedRun(world, config_of(text, directory)) {}
  SavedRun(MpiWorld& world, const Config& config)
      : SavedRun(world, config, device_of(config, &world)) {}
  SavedRun(MpiWorld& world, const Config& config, std::unique_ptr<Device> device)
      : world_(world),
        device_(std::move(device)),
        plan_(make_plan(config, world.size(), world.rank(),
                        device_traits(config.run.device, device_->info().num_threads))),
        connections_(connect(world, plan_)),
        tokens_(make_token_source(config.data, 1, plan_.shape.T, plan_.shape.V_valid)),
        engine_(std::make_unique<Engine>(plan_, *device_, connections_.table, *tokens_)) {
    if (!engine_->allocate()) throw std::bad_alloc();
    engine_->initialise_weights();
  }

  static Config config_of(const std::string& text, const std::string& directory) {
    Config config = resolved_config(combination(text));
    config.output.directory = ".";
    config.checkpoint.directory = directory;
    config.run.start.resume = "auto";
    // A scale that overflows at first: skipped steps, and then a scale that grows again.
    config.precision.initial_loss_scale = 0x1p24;
    config.precision.loss_scale_window = 2;
    config.precision.fp8_amax_history = 3;
    return config;
  }

  std::vector<StepResult> train(int64_t steps) {
    std::vector<StepResult> results;
    for (const int64_t end = steps_ + steps; steps_ < end; ++steps_)
      results.push_back(engine_->step(steps_, false));
    return results;
  }
  Manifest save() {
    begin_save();
    return finish_save();
  }
  void begin_save() {
    writer_ = std::make_unique<CheckpointWriter>(world_, *engine_, own_, steps_);
  }
  Manifest finish_save() {
    const std::unique_ptr<CheckpointWriter> writer = std::move(writer_);
    writer->finish();
    return writer->manifest();
  }
  // Continues; what was passed over is added to `passed_over`, on rank 0.
  TrainingStart load() {
    const TrainingStart start = start_training(
        world_, *engine_, [&](const std::string& line) { passed_over.push_back(line); });
    steps_ = start.steps;
    own_ = start.own;
    return start;
  }
  Engine& engine() { return *engine_; }

  std::vector<std::string> passed_over;

 private:
  MpiWorld& world_;
  std::unique_ptr<Device> device_;
  Plan plan_;
  Connections connections_;
  std::unique_ptr<TokenSource> tokens_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<CheckpointWriter> writer_;
  OwnCheckpoints own_;
  int64_t steps_ = 0;
};

// An empty directory name for one test, the same on all ranks.
class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() { clear(); }
  ~CheckpointTest() override { clear(); }

  std::string directory(const std::string& name = "ck") const { return root_ + "/" + name; }
  MpiWorld world{nullptr, nullptr};

 private:
  void clear() {
    world.barrier();
    if (world.rank() == 0) std::filesystem::remove_all(root_);
    world.barrier();
  }
  const std::string root_ = "checkpoint_test_" + std::to_string(world.size());
};

// The arrays of two checkpoints hold the same numbers. Checksums are known on rank 0 alone;
// elsewhere they are those of shares.
inline void expect_same(const MpiWorld& world, const Manifest& a, const Manifest& b) {
  if (world.rank() != 0) return;
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (size_t i = 0; i < a.arrays.size(); ++i) {
    EXPECT_EQ(a.arrays[i].name, b.arrays[i].name);
    EXPECT_EQ(a.arrays[i].checksum, b.arrays[i].checksum) << a.arrays[i].name;
  }
}

}  // namespace gptbench
