// The measured GEMM rate of this rank: the ceiling of a training step where the device's peak is
// not known.
#pragma once

#include <vector>

#include "device/device.h"
#include "plan/model.h"

namespace gptbench {

// y[R,N] = x[R,K] W[N,K]^T, `count` times in a forward pass.
struct GemmShape {
  int64_t R = 0, K = 0, N = 0;
  int64_t count = 1;
};

// The GEMMs of a whole model for `rows` rows, whatever its layout over ranks, so that runs which
// differ in their layout alone have one ceiling. Sizes are cut to 2,048 rows and 8,192 columns,
// beyond which the rate does not depend on them.
std::vector<GemmShape> gemms_of(const ModelShape& model, int64_t rows);

// FLOP/s of one rank on these GEMMs through the kernel table: the best time of each, over as many
// rounds as begin within budget_s (two at least). 0 where there is no memory for them. All ranks of
// a node call it at the same time, as they train at the same time.
double measure_gemm_ceiling(Device& device, ComputeType compute,
                            const std::vector<GemmShape>& gemms, double budget_s);

}  // namespace gptbench
