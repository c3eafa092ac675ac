// Sizes of the scratch memory that kernels use, stated once: the plan reserves it, kernels check
// it.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace gptbench {

// Reserved for the GEMM library (packed copies of operands). A GEMM that would need more fails its
// set-up, it does not allocate.
constexpr int64_t gemm_workspace_bytes = 32 * MiB;

// Tiles of the host's attention: query rows by key rows.
constexpr int64_t attention_tile_q = 128;
constexpr int64_t attention_tile_k = 512;

// A thread's scratch for one head of host attention, D the head size, `accumulation_bytes` bytes an
// element of S: scores and their gradients (2 tiles), the same rounded to A, accumulators of dq,
// and rows.
constexpr int64_t attention_workspace_bytes_a_thread(int64_t T, int64_t D,
                                                     int64_t accumulation_bytes) {
  const int64_t scores = attention_tile_q * attention_tile_k;
  const int64_t rows = 4 * (attention_tile_q + attention_tile_k) * (D + 4);
  const int64_t sequence = 3 * T * (D + 2);  // f32 accumulators of dq, dk, dv of one head
  return accumulation_bytes * (4 * scores + rows + sequence);
}

}  // namespace gptbench
