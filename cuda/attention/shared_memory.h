// What our own attention kernels need of a GPU, known before the first of them is launched.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace gptbench {

// Shared memory per block, in bytes, of the largest kernel for activations of `type` and heads of D
// elements: 96 KiB on tensor cores; in float 85 KiB up to D = 64, 149 KiB up to 128, 134 KiB
// beyond.
int64_t attention_shared_bytes(DType type, int64_t D);

}  // namespace gptbench
