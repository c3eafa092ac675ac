// Tiles of the SIMT attention: 256 threads as 16 x 16; a product of T x D by D x T, in float from
// shared memory, gives each thread (T/16)^2 scores: rows ty T/16 + i, columns tx + 16 j.
#pragma once

#include "cuda/attention/scores.cuh"
#include "cuda/kernels/reduce.cuh"

namespace gptbench::cuda {

constexpr int simt_threads = 256;

// D_max: size of a row in shared memory; T: rows of a tile of queries and of one of keys.
template <int D_max>
struct SimtTile {
  static constexpr int T = D_max <= 128 ? 64 : 32;
  static constexpr int per_thread = T / 16;   // rows, and columns of scores
  static constexpr int columns = D_max / 16;  // of D a thread: tx + 16 c
  static constexpr int stride = D_max + 4;    // 16-byte accesses of 8 rows hit all banks once
  static constexpr int score_stride = T + 4;
  static constexpr int floats = T * stride;  // of a tile of q, k, v or dout
  static constexpr int score_floats = T * score_stride;
  // Shared memory of a block that holds tiles of `operands` arrays and one of scores.
  static constexpr size_t shared_bytes(int operands) {
    return sizeof(float) * static_cast<size_t>(operands * floats + score_floats);
  }
};

struct SimtThread {
  int ty = static_cast<int>(threadIdx.x) / 16, tx = static_cast<int>(threadIdx.x) % 16;
};

// tile[r][d] = x[r row + d] for r < rows and d < D; 0 for what else there is up to T x D_max.
template <int D_max, class A>
__device__ inline void load_tile(float* tile, const A* x, int row, int rows, int D) {
  using Tile = SimtTile<D_max>;
  for (int e = static_cast<int>(threadIdx.x); e < Tile::T * D_max; e += simt_threads) {
    const int r = e / D_max, d = e % D_max;
    tile[r * Tile::stride + d] = r < rows && d < D ? to_float(x[r * row + d]) : 0.0f;
  }
}

// c[i][j] = sum over d of x[row i][d] y[column j][d].
template <int D_max>
__device__ inline void multiply_rows(
    float (&c)[SimtTile<D_max>::per_thread][SimtTile<D_max>::per_thread], const float* x,
    const float* y) {
  using Tile = SimtTile<D_max>;
  const SimtThread thread;
  GPTBENCH_UNROLL
  for (int i = 0; i < Tile::per_thread; ++i) {
    GPTBENCH_UNROLL
    for (int j = 0; j < Tile::per_thread; ++j) c[i][j] = 0.0f;
  }
  for (int d = 0; d < D_max; d += 4) {
    float4 a[Tile::per_thread], b[Tile::per_thread];
    GPTBENCH_UNROLL
    for (int i = 0; i < Tile::per_thread; ++i) {
      const int r = thread.ty * Tile::per_thread + i;
      a[i] = *GPTBENCH_VECTOR(const float4, x + r * Tile::stride + d);
      b[i] = *GPTBENCH_VECTOR(const float4, y + (thread.tx + 16 * i) * Tile::stride + d);
    }
    GPTBENCH_UNROLL
    for (int i = 0; i < Tile::per_thread; ++i) {
      GPTBENCH_UNROLL
      for (int j = 0; j < Tile::per_thread; ++j)
        c[i][j] += a[i].x * b[j].x + a[i].y * b[j].y + a[i].z * b[j].z + a[i].w * b[j].w;
    }
  }
}

// scores[row][column] = c, from registers to shared memory.
template <int D_max>
__device__ inline void store_scores(
    float* scores, const float (&c)[SimtTile<D_max>::per_thread][SimtTile<D_max>::per_thread]) {
  using Tile = SimtTile<D_max>;
  const SimtThread thread;
  GPTBENCH_UNROLL
  for (int i = 0; i < Tile::per_thread; ++i) {
    GPTBENCH_UNROLL
    for (int j = 0; j < Tile::per_thread; ++j)
      scores[(thread.ty * Tile::per_thread + i) * Tile::score_stride + thread.tx + 16 * j] =
          c[i][j];
  }
}

// acc[i][c] += sum over n of w[row i][n] y[n][column c], or of w[n][row i] where `transposed`.
template <int D_max, bool transposed>
__device__ inline void multiply_scores(
    float (&acc)[SimtTile<D_max>::per_thread][SimtTile<D_max>::columns], const float* w,
    const float* y) {
  using Tile = SimtTile<D_max>;
  const SimtThread thread;
  for (int n = 0; n < Tile::T; ++n) {
    float a[Tile::per_thread], b[Tile::columns];
    GPTBENCH_UNROLL
    for (int i = 0; i < Tile::per_thread; ++i) {
      const int r = thread.ty * Tile::per_thread + i;
      a[i] = transposed ? w[n * Tile::score_stride + r] : w[r * Tile::score_stride + n];
    }
    GPTBENCH_UNROLL
    for (int c = 0; c < Tile::columns; ++c) b[c] = y[n * Tile::stride + thread.tx + 16 * c];
    GPTBENCH_UNROLL
    for (int i = 0; i < Tile::per_thread; ++i) {
      GPTBENCH_UNROLL
      for (int c = 0; c < Tile::columns; ++c) acc[i][c] += a[i] * b[c];
    }
  }
}

// Maximum and sum over the 16 threads that share rows. NaN does not enter the maximum.
__device__ inline float row_max(float v) {
  GPTBENCH_UNROLL
  for (int bits = 8; bits > 0; bits /= 2) {
    const float other = __shfl_xor_sync(full_warp, v, bits);
    v = other > v ? other : v;
  }
  return v;
}
__device__ inline float row_sum(float v) {
  GPTBENCH_UNROLL
  for (int bits = 8; bits > 0; bits /= 2) v += __shfl_xor_sync(full_warp, v, bits);
  return v;
}

// Calls f(HeadSize<D_max>{}) for the least D_max that holds D. Types of 2 bytes come here where the
// tensor cores do not apply, which is rare: they have fewer sizes, to keep programs small.
template <int D_max>
struct HeadSize {
  static constexpr int value = D_max;
};
template <class A, class F>
void with_head_size(int64_t D, const F& f) {
  if constexpr (sizeof(A) == 2) {
    if (D <= 64)
      f(HeadSize<64>{});
    else
      f(HeadSize<256>{});
  } else {
    if (D <= 32)
      f(HeadSize<32>{});
    else if (D <= 64)
      f(HeadSize<64>{});
    else if (D <= 128)
      f(HeadSize<128>{});
    else
      f(HeadSize<256>{});
  }
}

}  // namespace gptbench::cuda
