// The host's kernels: Kokkos for everything but matrix products, oneDNN for those.
#pragma once

#include "device/kernels.h"

namespace gptbench {

// fp32 and bf16.
const KernelTable& host_kernels(ComputeType compute);

}  // namespace gptbench
