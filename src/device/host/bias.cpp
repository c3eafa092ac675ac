#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"

namespace gptbench::host {

// A thread owns columns; blocks of rows are added in order.
template <class A>
void bias_backward(Queue&, const BiasBackward& a) {
  float* const dbias = static_cast<float*>(a.dbias);
  const A* const dy = static_cast<const A*>(a.dy);
  const int64_t R = a.R, N = a.N;
  parallel("gptbench::bias_gradient", ceil_div(N, column_block), [=](int64_t block) {
    const int64_t n0 = block * column_block;
    const int64_t width = std::min(column_block, N - n0);
    for (int64_t begin = 0; begin < R; begin += row_block) {
      const int64_t end = std::min(R, begin + row_block);
      float part[column_block] = {};
      for (int64_t r = begin; r < end; ++r) {
        const A* const row = dy + r * N + n0;
#pragma omp simd
        for (int64_t n = 0; n < width; ++n) part[n] += simd::load(row[n]);
      }
#pragma omp simd
      for (int64_t n = 0; n < width; ++n) dbias[n0 + n] += part[n];
    }
  });
}

GPTBENCH_BIAS_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
