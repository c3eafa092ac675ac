// Sizes of the scratch memory that kernels use, stated once: the plan reserves it, kernels check
// it.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace gptbench {

// Reserved for the GEMM library, at least; the attention's scratch serves it as well where that is
// larger. Measured: 1.6 MiB per thread on the shapes of GPT-2 124M to 70B, R = 1 to 8192. A product
// that would need more is split or computed another way, it does not allocate.
constexpr int64_t gemm_workspace_bytes = 32 * MiB;

// Tiles of the host's attention: keys by a panel of queries, which is narrow so that little is
// computed of what a causal mask hides. Some panels in turn share each tile of keys while it is in
// cache.
constexpr int64_t attention_tile_keys = 512;
constexpr int64_t attention_tile_queries = 64;
constexpr int64_t attention_tile_area = attention_tile_keys * attention_tile_queries;
constexpr int64_t attention_panels = 4;
// Scratch of the GEMM library for one tile.
constexpr int64_t attention_gemm_bytes = 2 * MiB;

// A thread's scratch for one head of host attention, linear in the number of keys T_k; D the head
// size, `accumulation_bytes` bytes an element of S. Backward needs the most: of each key packed
// copies of k (as it is and transposed) and v, accumulators of dk and dv; five tiles (scores, their
// gradients, both rounded to A, dropout factors); of panels of queries q and dout (as they are and
// transposed) and the accumulator of dq; and part of a tile of keys.
constexpr int64_t attention_workspace_bytes_per_thread(int64_t T_k, int64_t D,
                                                       int64_t accumulation_bytes) {
  const int64_t sequence = 5 * round_up(T_k, attention_tile_keys) * D;
  const int64_t tiles = 5 * attention_tile_area;
  const int64_t queries = (5 * attention_panels * attention_tile_queries + attention_tile_keys) * D;
  const int64_t alignment = 24 * 64;  // each array starts a cache line
  return attention_gemm_bytes +
         round_up(accumulation_bytes * (sequence + tiles + queries) + alignment, 4 * KiB);
}

// Scratch of the attention's gradient on a GPU, for B sequences: a float for each row of each head.
constexpr int64_t cuda_attention_workspace_bytes(int64_t B, int64_t H, int64_t T) {
  return 4 * B * H * T;
}

// Scratch of the attention by way of cuDNN: of its gradient the sums above, dq in float, and as
// much again for the library's own use (what version 9.19 asks for, once more where heads are
// shared).
constexpr int64_t cudnn_attention_workspace_bytes(int64_t B, int64_t H, int64_t T, int64_t D) {
  return 4 * B * H * T * (2 * D + 1) + MiB;
}

}  // namespace gptbench
