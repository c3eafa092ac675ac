#include "engine/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace gptbench {

double learning_rate_of(const Config& config, int64_t update) {
  const ConvergenceConfig& convergence = config.convergence;
  const double lr = config.optimizer.lr;
  const int64_t warmup = convergence.lr_warmup_steps;
  if (update <= warmup) return lr * static_cast<double>(update) / static_cast<double>(warmup);
  if (convergence.lr_schedule == LearningRate::constant) return lr;
  const int64_t decay = decay_steps_of(config) - warmup;
  const double done =
      static_cast<double>(std::min(update - warmup, decay)) / static_cast<double>(decay);
  const double pi = std::acos(-1.0);
  return convergence.lr_min + 0.5 * (lr - convergence.lr_min) * (1.0 + std::cos(pi * done));
}

}  // namespace gptbench
