#include "engine/step_constants.h"

#include <gtest/gtest.h>

#include "configs.h"

namespace gptbench {

TEST(StepConstants, AreThoseOfTheStepAndUpdate) {
  Config config = resolved_config(SmallModel{});
  config.optimizer.lr = 0.5;
  config.optimizer.beta1 = 0.75;
  config.optimizer.beta2 = 0.4375;
  config.optimizer.weight_decay = 0.25;
  config.model.dropout = 0.25;
  config.run.seed = 7;
  StepConstants constants(config);
  constants.begin_step(0, 1);
  EXPECT_EQ(constants.dropout_seed(), 7u);
  const std::array<float, 3> first = {2.0f, 1.0f / 0.75f, 0.125f};
  EXPECT_EQ(constants.corrections(), first);  // 0.5 / (1 - 0.75), 1 / sqrt(1 - 0.4375), 0.5 x 0.25

  constants.begin_evaluation();
  EXPECT_EQ(constants.dropout_rate(), 0.0);
  constants.begin_step(3, 2);  // two steps were skipped
  EXPECT_EQ(constants.dropout_rate(), 0.25);
  EXPECT_EQ(constants.dropout_seed(), 7u + 3u * 0x9E3779B97F4A7C15u);
  EXPECT_EQ(constants.corrections()[0], 0.5f / 0.4375f);  // 1 - 0.75^2
}

}  // namespace gptbench
