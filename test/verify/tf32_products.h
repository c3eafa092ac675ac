// What tensor cores make of fp32 products with precision.tf32, on the host.
#pragma once

#include "device/kernels.h"

namespace gptbench {

// `exact`, a table for fp32, with linear layers whose factors keep 10 bits of their fractions, the
// others cut off; sums and gradients of biases stay f32.
KernelTable tf32_products(const KernelTable& exact);

}  // namespace gptbench
