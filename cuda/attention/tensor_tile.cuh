// Tiles of rows of A, bfloat16 or float16, in shared memory and the two products that attention is
// made of, each of them by one warp.
#pragma once

#include "base/dtype.h"
#include "cuda/attention/mma.cuh"
#include "cuda/attention/scores.cuh"
#include "cuda/attention/swizzle.h"
#include "cuda/kernels/number.cuh"
#include "cuda/kernels/reduce.cuh"

namespace gptbench::cuda {

// Index of the thread in its block. What follows from it is computed where it is used: the compiler
// would keep dozens of addresses in shared memory in registers that accumulators need.
__device__ inline int own_thread() {
  int thread = static_cast<int>(threadIdx.x);
#if !defined(GPTBENCH_EMULATION)
  asm volatile("" : "+r"(thread));
#endif
  return thread;
}

// tile[r][d] = x[r row + d] for r < rows and d < size, zeros for what else there is up to R x D;
// complete after commit and wait. size is a multiple of 8.
template <int D, int R, int threads, class A>
__device__ inline void load_rows_async(A* tile, const A* x, int64_t row, int rows, int64_t size) {
  constexpr int chunks = D / 8;
  static_assert(R * chunks % threads == 0, "as many copies for every thread");
  const int thread = own_thread();
  GPTBENCH_UNROLL
  for (int n = 0; n < R * chunks / threads; ++n) {
    const int e = n * threads + thread;
    const int r = e / chunks, chunk = e % chunks;
    const bool exists = r < rows && chunk * 8 < size;
    copy_16_async(tile + swizzled<D>(r, chunk), x + (exists ? r * row + chunk * 8 : 0), exists);
  }
}

// c[m][n/8] = x y^T: rows x_row + 16 m .. + 15 of tile x by rows 0 .. N-1 of tile y, summed over D.
template <int D, int N, int M, class A>
__device__ inline void rows_times_rows(float (&c)[M][N / 8][4], const A* x, int x_row, const A* y) {
  const int lane = own_thread() % 32;
  GPTBENCH_UNROLL
  for (int m = 0; m < M; ++m) {
    GPTBENCH_UNROLL
    for (int n = 0; n < N / 8; ++n) c[m][n][0] = c[m][n][1] = c[m][n][2] = c[m][n][3] = 0.0f;
  }
  GPTBENCH_UNROLL
  for (int k = 0; k < D / 16; ++k) {
    uint32_t a[M][4];
    GPTBENCH_UNROLL
    for (int m = 0; m < M; ++m)
      ldmatrix_x4(a[m], x + swizzled<D>(x_row + 16 * m + lane % 16, 2 * k + lane / 16));
    GPTBENCH_UNROLL
    for (int n = 0; n < N / 16; ++n) {
      uint32_t b[4];
      ldmatrix_x4(b, y + swizzled<D>(16 * n + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
      GPTBENCH_UNROLL
      for (int m = 0; m < M; ++m) {
        mma<A>(c[m][2 * n], a[m], b[0], b[1]);
        mma<A>(c[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// acc[m][d/8] += p y: 16 x N products in registers, as rows_times_rows leaves them, rounded to
// A, by rows 0 .. N-1 of tile y.
template <int D, int N, int M, class A>
__device__ inline void fragment_times_rows(float (&acc)[M][D / 8][4], const float (&p)[M][N / 8][4],
                                           const A* y) {
  const int lane = own_thread() % 32;
  GPTBENCH_UNROLL
  for (int k = 0; k < N / 16; ++k) {
    uint32_t a[M][4];
    GPTBENCH_UNROLL
    for (int m = 0; m < M; ++m) {
      GPTBENCH_UNROLL
      for (int i = 0; i < 4; ++i)
        a[m][i] = pack<A>(p[m][2 * k + i / 2][i % 2 * 2], p[m][2 * k + i / 2][i % 2 * 2 + 1]);
    }
    GPTBENCH_UNROLL
    for (int d = 0; d < D / 16; ++d) {
      uint32_t b[4];
      ldmatrix_x4_transposed(b, y + swizzled<D>(16 * k + lane % 16, 2 * d + lane / 16));
      GPTBENCH_UNROLL
      for (int m = 0; m < M; ++m) {
        mma<A>(acc[m][2 * d], a[m], b[0], b[1]);
        mma<A>(acc[m][2 * d + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// Two neighbouring elements of a result: assigned, or added to.
template <class A>
__device__ inline void put_pair(A* at, float x, float y, bool) {
  *GPTBENCH_VECTOR(uint32_t, at) = pack<A>(x, y);
}
__device__ inline void put_pair(float* at, float x, float y, bool adds) {
  float2* const pair = GPTBENCH_VECTOR(float2, at);
  const float2 before = adds ? *pair : float2{0.0f, 0.0f};
  *pair = float2{before.x + x, before.y + y};
}

// Rows [row0, row0 + 16) of a result that begins at element `at` of `out`, in float or A; its
// fragments are acc, times a scale for either half of them. `end` rows of `size` elements exist.
struct Result {
  void* out;
  int64_t at, row;
  bool in_float, adds;
};
template <int D, class A>
__device__ inline void put_rows(const Result& result, int row0, int end, int64_t size,
                                const float (&acc)[D / 8][4], float scale_low, float scale_high) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto put = [&](int64_t i, float x, float y) {
    if (result.in_float)
      put_pair(static_cast<float*>(result.out) + i, x, y, result.adds);
    else
      put_pair(static_cast<A*>(result.out) + i, x, y, result.adds);
  };
  const int low = row0 + lane / 4, high = low + 8;
  const int64_t at_low = result.at + low * result.row, at_high = at_low + 8 * result.row;
  GPTBENCH_UNROLL
  for (int n = 0; n < D / 8; ++n) {
    const int d = 8 * n + 2 * (lane % 4);
    if (d >= size) continue;
    if (low < end) put(at_low + d, acc[n][0] * scale_low, acc[n][1] * scale_low);
    if (high < end) put(at_high + d, acc[n][2] * scale_high, acc[n][3] * scale_high);
  }
}

// Over the four lanes that share rows of a fragment. NaN does not enter the maximum.
__device__ inline float quad_max(float v) {
  GPTBENCH_UNROLL
  for (int bits = 2; bits > 0; bits /= 2) {
    const float other = __shfl_xor_sync(full_warp, v, bits);
    v = other > v ? other : v;
  }
  return v;
}
__device__ inline float quad_sum(float v) {
  GPTBENCH_UNROLL
  for (int bits = 2; bits > 0; bits /= 2) v += __shfl_xor_sync(full_warp, v, bits);
  return v;
}

}  // namespace gptbench::cuda
