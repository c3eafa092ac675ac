// What our own attention kernels need of a GPU, and take at most, known before the first of them is
// launched.
#pragma once

#include <climits>
#include <cstdint>

#include "base/dtype.h"

namespace gptbench {

// Shared memory per block, in bytes, of the largest kernel for activations of `type` and heads of D
// elements: 96 KiB on tensor cores; in float 85 KiB up to D = 64, 149 KiB up to 128, 134 KiB
// beyond.
int64_t attention_shared_bytes(DType type, int64_t D);

// Loops over scores count positions in 32 bits, and so elements within a tile, of at most 128 rows
// of q, k, v or out; rows behind the last one have numbers, too. A grid has a place for each head
// and sequence.
constexpr int64_t max_attention_positions = INT_MAX / 2, max_attention_row = INT_MAX / 256;
constexpr int64_t max_attention_heads = 65535, max_attention_sequences = 65535;

}  // namespace gptbench
