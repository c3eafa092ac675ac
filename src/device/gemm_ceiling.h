// The measured GEMM rate of this rank: the ceiling of a training step where the device's peak is
// not known.
#pragma once

#include "device/device.h"

namespace gptbench {

// FLOP/s of one rank on GEMMs of a transformer's shapes (R 1024, 768 x 3072), through the kernel
// table; takes at most about budget_s seconds. All ranks of a node call it at the same time, as
// they train at the same time.
double measure_gemm_ceiling(Device& device, ComputeType compute, double budget_s);

}  // namespace gptbench
