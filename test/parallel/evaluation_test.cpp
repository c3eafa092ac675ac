// Evaluation by forward passes alone, and the schedule of the learning rate. That every
// decomposition evaluates what it trains is part of equivalence_test.cpp.
#include <gtest/gtest.h>

#include "engine/learning_rate.h"
#include "train.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

// One rank; `evaluated`: global batches evaluated before each step, those of the data that follows.
struct Outcome {
  std::vector<double> losses;  // of the steps
  double evaluated = 0.0;      // loss of batch 0 before the first step
  uint64_t checksum = 0;       // of the weights behind the last
};
Outcome outcome_of(const SmallModel& model, int evaluated) {
  const Config config = resolved_config(model);
  const std::unique_ptr<Device> device = device_of(config, nullptr);
  const Plan plan =
      make_plan(config, 1, 0, device_traits(config.run.device, device->info().num_threads));
  const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, *device, {}, *tokens);
  if (!engine.allocate()) throw std::bad_alloc();
  engine.initialise_weights();
  Outcome run;
  for (int step = 0; step < 3; ++step) {
    for (int batch = evaluated; batch-- > 0;) {
      const double loss = engine.evaluate((step + batch) * config.batch.global_batch_size);
      if (step == 0) run.evaluated = loss;  // the last one is of batch 0
    }
    run.losses.push_back(engine.step(step, false).loss);
  }
  run.checksum = engine.checksum();
  return run;
}

// Twice the same loss, that of the model without dropout; and the bits of a training that is
// interrupted by evaluations are those of one that is not, dropout, padding and scales of fp8
// included.
TEST(Evaluation, IsWithoutDropoutAndLeavesTheTrainingAlone) {
  for (const char* family : {"gpt", "bert", "llama"})
    for (const char* compute : {"fp32", "bf16", "fp16", "fp8"}) {
      SCOPED_TRACE(testing::Message() << family << " " << compute);
      SmallModel m = model_of("host", compute, 2, 5);
      m.family = family;
      if (m.family == std::string("bert")) m.short_seq_prob = 0.75;
      const Outcome plain = outcome_of(m, 0);
      m.dropout = 0.2;
      const Outcome dropped = outcome_of(m, 0), evaluated = outcome_of(m, 3);
      EXPECT_NEAR(evaluated.evaluated, plain.losses[0], 1e-12 * plain.losses[0]);
      EXPECT_NE(dropped.losses[0], plain.losses[0]);
      EXPECT_EQ(evaluated.losses, dropped.losses);
      EXPECT_EQ(evaluated.checksum, dropped.checksum);
    }
}

TEST(LearningRate, RisesAndFallsLikeACosine) {
  Config config;
  config.optimizer.lr = 1.0;
  config.run.steps = 12;
  ConvergenceConfig& c = config.convergence;
  EXPECT_EQ(learning_rate_of(config, 1), 1.0);
  c.lr_warmup_steps = 4;
  EXPECT_EQ(learning_rate_of(config, 1), 0.25);
  EXPECT_EQ(learning_rate_of(config, 4), 1.0);
  EXPECT_EQ(learning_rate_of(config, 100), 1.0);
  c.lr_schedule = LearningRate::cosine;
  c.lr_min = 0.1;
  EXPECT_EQ(learning_rate_of(config, 3), 0.75);
  EXPECT_NEAR(learning_rate_of(config, 6), 0.55 + 0.45 * std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(learning_rate_of(config, 8), 0.55, 1e-15);
  for (const int64_t update : {12, 13, 1000})
    EXPECT_NEAR(learning_rate_of(config, update), 0.1, 1e-15);
  c.lr_decay_steps = 20;
  EXPECT_NEAR(learning_rate_of(config, 12), 0.55, 1e-15);
}

std::vector<double> rates;
KernelTable sound;

class RateWitness final : public WrappedDevice {
 public:
  RateWitness() : WrappedDevice(make_host_device(DeviceKind::ref)) {}
  const KernelTable& kernels(ComputeType compute) const override {
    table_ = sound = WrappedDevice::kernels(compute);
    table_.adamw = [](Queue& q, const AdamW& a) {
      if (static_cast<size_t>(a.t) > rates.size()) rates.push_back(a.lr);
      sound.adamw(q, a);
    };
    return table_;
  }

 private:
  mutable KernelTable table_;
};

TEST(LearningRate, IsThatOfTheUpdate) {
  Config config = resolved_config(model_of("ref", "fp32", 2, 4));
  config.optimizer.lr = 0.5;
  config.convergence.lr_warmup_steps = 2;
  const Plan plan = make_plan(config, 1, 0);
  RateWitness device;
  const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, device, {}, *tokens);
  ASSERT_TRUE(engine.allocate());
  engine.initialise_weights();
  rates.clear();
  for (int step = 0; step < 3; ++step) engine.step(step, false);
  EXPECT_EQ(rates, (std::vector<double>{0.25, 0.5, 0.5}));
}

}  // namespace
}  // namespace gptbench
