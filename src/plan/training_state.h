// State that one training step leaves to the next beside parameters, moments and the scaling of
// fp8.
#pragma once

#include <array>
#include <cstdint>

namespace gptbench {

// The same on all ranks.
struct TrainingState {
  int64_t steps = 0;      // executed since the model was fresh
  int64_t updates = 0;    // of the parameters: steps that were not skipped
  int64_t sequences = 0;  // of the stream of tokens that were trained on
  // State of the dynamic loss scale (LossScale in device/kernels.h); 0: the loss is not scaled.
  std::array<double, 3> loss_scale{};
  double steps_s = 0.0;  // sum of the times of these steps; 0: not known
};

}  // namespace gptbench
