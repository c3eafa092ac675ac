#include "engine/step_constants.h"

#include <cmath>

#include "engine/learning_rate.h"

namespace gptbench {

void StepConstants::begin_step(int64_t step, int64_t update) {
  step_ = step;
  update_ = update;
  evaluates_ = false;
}

double StepConstants::learning_rate() const {
  return learning_rate_of(config_, update_);
}

std::array<float, 3> StepConstants::corrections() const {
  const OptimizerConfig& o = config_.optimizer;
  const double t = static_cast<double>(update_);
  return {static_cast<float>(learning_rate() / (1.0 - std::pow(o.beta1, t))),
          static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(o.beta2, t))),
          static_cast<float>(learning_rate() * o.weight_decay)};
}

// A seed of its own for each step: an odd multiple of the step never repeats in 2^64 steps.
uint64_t StepConstants::dropout_seed() const {
  return static_cast<uint64_t>(config_.run.seed) +
         static_cast<uint64_t>(step_) * 0x9E3779B97F4A7C15ull;
}

}  // namespace gptbench
