// Dynamic loss scaling over whole steps: what overflows is skipped on all ranks alike, and leaves
// no trace but the smaller scale.
#include <gtest/gtest.h>

#include <cmath>

#include "combination.h"
#include "train.h"

namespace gptbench {
namespace {

struct Scaled {
  std::vector<StepResult> steps;
  uint64_t first_checksum = 0;  // of this rank's parameters after the first step
  uint64_t checksum = 0;        // after the last
};

// Steps `first` to `last` of a new model. Collective.
Scaled train_scaled(MpiWorld& world, const SmallModel& model, const PrecisionConfig& scaling,
                    int first, int last) {
  Config config = resolved_config(model);
  config.output.directory = ".";
  config.precision.loss_scale = scaling.loss_scale;
  config.precision.initial_loss_scale = scaling.initial_loss_scale;
  config.precision.loss_scale_window = scaling.loss_scale_window;
  config.precision.loss_scale_hysteresis = scaling.loss_scale_hysteresis;
  const auto device = make_host_device(DeviceKind::host);
  const Plan plan = make_plan(config, world.size(), world.rank(),
                              device_traits(config.run.device, device->info().num_threads));
  const Connections connections = connect(world, plan);
  const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, *device, connections.table, *tokens);
  if (!engine.allocate()) throw std::bad_alloc();
  engine.initialise_weights();
  Scaled scaled;
  for (int step = first; step <= last; ++step) {
    scaled.steps.push_back(engine.step(step, false));
    if (step == first) scaled.first_checksum = engine.checksum();
  }
  scaled.checksum = engine.checksum();
  return scaled;
}

const char* const models[] = {
    "fp16 host dropout",
    "fp16 host optimizer,parameters",
    // two ranks
    "dp2 zero3 fp16 host optimizer,parameters",
    "dp2 zero2 fp16 host r16",
    "pp2 1f1b fp16 host",
    "tp2 sp fp16 host",
    "cp2 zero1 det fp16 host",
    // four
    "dp2 pp2 zero1 fp16 host optimizer file",
};

std::vector<SmallModel> models_of(const MpiWorld& world) {
  std::vector<SmallModel> fit;
  for (const char* text : models)
    if (combination(text).ranks() == world.size()) fit.push_back(combination(text));
  EXPECT_FALSE(fit.empty()) << "no model is of " << world.size() << " ranks";
  return fit;
}

// From 2^40 on, which no f16 holds: a loss gradient of 2^40 / 128 tokens.
constexpr double far_too_large = 0x1p40;

TEST(LossScale, OverflowCostsItsStepsAlone) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : models_of(world)) {
    SCOPED_TRACE(name_of(m));
    PrecisionConfig scaling;
    scaling.initial_loss_scale = far_too_large;
    constexpr int most = 40;
    const Scaled lowered = train_scaled(world, m, scaling, 0, most + 3);
    int skipped = 0;
    double scale = far_too_large;
    for (; skipped < most && lowered.steps[static_cast<size_t>(skipped)].skipped; ++skipped) {
      const StepResult& step = lowered.steps[static_cast<size_t>(skipped)];
      EXPECT_EQ(step.loss_scale, scale);
      EXPECT_EQ(step.next_loss_scale, scale / 2.0);
      EXPECT_TRUE(std::isfinite(step.loss));
      EXPECT_FALSE(std::isfinite(step.grad_norm));
      scale /= 2.0;
    }
    // The largest gradient of a logit is (1 - p) scale / 128, which f16 holds up to 65504.
    EXPECT_GE(skipped, 17);
    ASSERT_LT(skipped, most);
    EXPECT_EQ(world.max(int64_t{skipped}), skipped);
    EXPECT_EQ(world.max(-int64_t{skipped}), -skipped);

    // A run that begins here, at this scale: the same bits, bias correction included.
    scaling.initial_loss_scale = scale;
    const Scaled right = train_scaled(world, m, scaling, skipped, most + 3);
    EXPECT_NE(right.first_checksum, lowered.first_checksum);
    for (size_t i = 0; i < right.steps.size(); ++i) {
      const StepResult& expected = right.steps[i];
      const StepResult& got = lowered.steps[static_cast<size_t>(skipped) + i];
      EXPECT_EQ(got.loss, expected.loss) << i;
      EXPECT_EQ(got.loss_scale, expected.loss_scale) << i;
      EXPECT_EQ(got.skipped, expected.skipped) << i;
      if (!expected.skipped) {
        EXPECT_EQ(got.grad_norm, expected.grad_norm) << i;
      }
    }
    EXPECT_EQ(lowered.checksum, right.checksum);
  }
}

// A skipped step leaves the parameters as they were drawn.
TEST(LossScale, ASkippedStepChangesNoParameter) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : models_of(world)) {
    SCOPED_TRACE(name_of(m));
    PrecisionConfig scaling;
    scaling.loss_scale = far_too_large;
    const Scaled once = train_scaled(world, m, scaling, 0, 0);
    const Scaled thrice = train_scaled(world, m, scaling, 0, 2);
    for (const StepResult& step : thrice.steps) {
      EXPECT_TRUE(step.skipped);
      EXPECT_EQ(step.next_loss_scale, far_too_large);  // a fixed scale stays
    }
    EXPECT_EQ(thrice.first_checksum, once.checksum);
    EXPECT_EQ(thrice.checksum, once.checksum);
  }
}

// The scale bears two bad steps, and shrinks in each from the third on.
TEST(LossScale, ShrinksAfterBadSteps) {
  MpiWorld world(nullptr, nullptr);
  PrecisionConfig scaling;
  scaling.initial_loss_scale = far_too_large;
  scaling.loss_scale_hysteresis = 3;
  const Scaled shrunk = train_scaled(world, models_of(world).front(), scaling, 0, 4);
  for (size_t i = 0; i < shrunk.steps.size(); ++i)
    EXPECT_EQ(shrunk.steps[i].loss_scale,
              std::ldexp(far_too_large, i < 3 ? 0 : 2 - static_cast<int>(i)));
}

// Powers of two: as long as no gradient leaves the normal numbers of f16 the scale leaves no trace
// in losses but where gradients are so small that f16 holds fewer bits of them.
TEST(LossScale, GrowsAfterGoodSteps) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : models_of(world)) {
    SCOPED_TRACE(name_of(m));
    PrecisionConfig scaling;
    scaling.initial_loss_scale = 1024.0;
    scaling.loss_scale_window = 2;
    const Scaled grown = train_scaled(world, m, scaling, 0, 6);
    for (size_t i = 0; i < grown.steps.size(); ++i)
      EXPECT_EQ(grown.steps[i].loss_scale, std::ldexp(1024.0, static_cast<int>(i / 2)));
    scaling.loss_scale_window = 2000;
    const Scaled constant = train_scaled(world, m, scaling, 0, 6);
    for (size_t i = 0; i < grown.steps.size(); ++i)
      EXPECT_NEAR(grown.steps[i].loss, constant.steps[i].loss, 0x1p-11 * constant.steps[i].loss);
  }
}

}  // namespace
}  // namespace gptbench
