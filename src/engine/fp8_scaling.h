// Scaling of fp8 as a checkpoint holds it.
#pragma once

#include <string>
#include <vector>

#include "engine/resources.h"

namespace gptbench {

// The scaling of one factor of a linear layer in fp8 (plan/fp8.h).
struct Fp8Scaling {
  std::string name;         // factor_name()
  float scale = 1.0f;       // of the next step
  std::vector<float> amax;  // [fp8_amax_history] of the last steps, the oldest first
};

// Local; assigns the scales of all factors of this rank, in the order of its plan.
void put_fp8_scales(Resources& resources, const std::vector<float>& scales);

// Local; of all factors of this rank, in the order of its plan.
std::vector<Fp8Scaling> read_fp8_scaling(Resources& resources);
void write_fp8_scaling(Resources& resources, const std::vector<Fp8Scaling>& factors);

}  // namespace gptbench
