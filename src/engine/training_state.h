// What one training step leaves to the next beside parameters and moments.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/resources.h"

namespace gptbench {

// The same on all ranks.
struct TrainingState {
  int64_t steps = 0;      // executed since the model was fresh
  int64_t updates = 0;    // of the parameters: steps that were not skipped
  int64_t sequences = 0;  // of the stream of tokens that were trained on
  // State of the dynamic loss scale (LossScale in device/kernels.h); 0: the loss is not scaled.
  std::array<double, 3> loss_scale{};
};
constexpr int64_t loss_scale_bytes = sizeof TrainingState::loss_scale;

// The scaling of one factor of a linear layer in fp8 (plan/fp8.h).
struct Fp8Scaling {
  std::string name;         // factor_name()
  float scale = 1.0f;       // of the next step
  std::vector<float> amax;  // [fp8_amax_history] of the last steps, the oldest first
};

// Local; of all factors of this rank, in the order of its plan.
std::vector<Fp8Scaling> read_fp8_scaling(Resources& resources);
void write_fp8_scaling(Resources& resources, const std::vector<Fp8Scaling>& factors);

}  // namespace gptbench
