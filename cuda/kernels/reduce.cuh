// Sums over the threads of a block, in an order that is always the same, for every thread to have.
#pragma once

#include "cuda/kernels/runtime.h"

namespace gptbench::cuda {

constexpr unsigned full_warp = 0xffffffffu;

template <class T>
__device__ inline T warp_sum(T v) {
  GPTBENCH_UNROLL
  for (int bits = 16; bits > 0; bits /= 2) v += __shfl_xor_sync(full_warp, v, bits);
  return v;
}

// v[m] = sum of v[m] over W warps: this warp (W = 1), or all warps of the block, which then has W
// of them and calls this together. `shared` holds M W values, free again when the call returns.
template <int W, int M, class T>
__device__ inline void group_sum(T (&v)[M], T* shared) {
  GPTBENCH_UNROLL
  for (int m = 0; m < M; ++m) v[m] = warp_sum(v[m]);
  if constexpr (W > 1) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) {
      GPTBENCH_UNROLL
      for (int m = 0; m < M; ++m) shared[m * W + warp] = v[m];
    }
    __syncthreads();
    GPTBENCH_UNROLL
    for (int m = 0; m < M; ++m) {
      T sum = shared[m * W];
      GPTBENCH_UNROLL
      for (int w = 1; w < W; ++w) sum += shared[m * W + w];
      v[m] = sum;
    }
    __syncthreads();
  }
}

}  // namespace gptbench::cuda
