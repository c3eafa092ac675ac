// Limits of our own attention kernels, known before the first of them is launched.
#pragma once

#include <climits>
#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace gptbench {

struct Plan;

constexpr int64_t max_attention_head_size = 256;
// Loops over scores count in 32 bits: positions, those behind the last row of a tile included, and
// elements of a tile of up to 128 rows of q, k, v or out.
constexpr int64_t max_attention_positions = INT_MAX / 2, max_attention_row = INT_MAX / 256;
// A grid has a place for each head and each sequence.
constexpr int64_t max_attention_heads = 65535, max_attention_sequences = 65535;

// Shared memory per block, in bytes, of the largest kernel for activations of `type` and heads of D
// elements: 96 KiB on tensor cores; in float 85 KiB up to D = 64, 149 KiB up to 128, 134 KiB
// beyond. GPUs of compute capability 8.6, 8.9 and 12.x offer 99 KiB, A100 163, H100 and H200 227.
int64_t attention_shared_bytes(DType type, int64_t D);

// Refuses, with status Exit::usage, a plan whose attention no kernel of ours computes on a GPU of
// that name, whose blocks may have so much shared memory.
void check_attention(const Plan& plan, const std::string& gpu, int64_t shared_bytes);

}  // namespace gptbench
