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
// differ in their layout alone have one ceiling. Rows are cut to 16,384, several waves of tiles on
// any device: the rate does not depend on more, and a long sequence would take minutes.
std::vector<GemmShape> gemms_of(const ModelShape& model, int64_t rows);

// Bytes that measuring them takes on a rank.
int64_t ceiling_bytes(ComputeType compute, const std::vector<GemmShape>& gemms);

// FLOP/s of one rank on these GEMMs through the kernel table: the best time of each, repeated in
// rounds until it has taken its share of budget_s (once at least, and once before, untimed). 0
// where there is no memory for them. All ranks of a node call it at the same time, as they train at
// the same time.
double measure_gemm_ceiling(Device& device, ComputeType compute,
                            const std::vector<GemmShape>& gemms, double budget_s);

}  // namespace gptbench
