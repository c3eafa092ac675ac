// Sizes of the scratch memory that kernels use, stated once: the plan reserves it, kernels check
// it.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace gptbench {

// Reserved for the GEMM library, at least; the attention's scratch serves it as well where that is
// larger. Measured: 1.6 MiB a thread on the shapes of GPT-2 124M to 70B, R = 1 to 8192. A product
// that would need more is split or computed another way, it does not allocate.
constexpr int64_t gemm_workspace_bytes = 32 * MiB;

// Tiles of the host's attention: rows of the one side (queries forward, keys backward) by columns
// of the other.
constexpr int64_t attention_tile_rows = 128;
constexpr int64_t attention_tile_columns = 512;
// Scratch of the GEMM library for one tile.
constexpr int64_t attention_gemm_bytes = 2 * MiB;

// A thread's scratch for one head of host attention, linear in T; D the head size,
// `accumulation_bytes` bytes an element of S. Backward needs the most: packed copies of q, k, v and
// dout, accumulators of dq, dk and dv, two rows (lse, delta), and five tiles (scores, their
// gradients, both rounded to A, dropout factors).
constexpr int64_t attention_workspace_bytes_a_thread(int64_t T, int64_t D,
                                                     int64_t accumulation_bytes) {
  const int64_t sequence = 7 * T * D + 2 * T;
  const int64_t tiles = 5 * attention_tile_rows * attention_tile_columns;
  const int64_t rows = attention_tile_rows * (D + 2);  // forward: accumulator of out, max, sum
  const int64_t alignment = 16 * 64;                   // each array starts a cache line
  return attention_gemm_bytes +
         round_up(accumulation_bytes * (sequence + tiles + rows) + alignment, 4 * KiB);
}

}  // namespace gptbench
