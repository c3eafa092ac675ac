#include "device/host/dropout.h"
#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_map.h"
#include "device/host/simd_math.h"

namespace gptbench::host {

template <class A>
void residual_forward(Queue&, const ResidualForward& a) {
  A* const y = static_cast<A*>(a.y);
  const A* const residual = static_cast<const A*>(a.residual);
  const A* const x = static_cast<const A*>(a.x);
  if (a.dropout.rate == 0.0) {
    parallel_blocks("gptbench::residual_forward", a.R * a.C, [=](int64_t begin, int64_t end) {
      if (residual != nullptr) {
        simd::map<simd::Ties::to_even>(
            y + begin, end - begin, [](float u, float v) { return u + v; }, residual + begin,
            x + begin);
      } else {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) y[i] = x[i];
      }
    });
    return;
  }
  const DropoutFactors factors(a.dropout);
  const GlobalRows rows = a.rows;
  const int64_t C = a.C;
  parallel("gptbench::residual_forward_dropout", a.R, [=](int64_t r) {
    float factor[dropout_chunk];
    const int64_t first_element = global_row(rows, r) * C;
    for (int64_t c0 = 0; c0 < C; c0 += dropout_chunk) {
      const int64_t count = std::min(dropout_chunk, C - c0);
      const int64_t first = r * C + c0;
      factors.fill(factor, first_element + c0, count);
      if (residual != nullptr) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
          simd::store(y[first + i],
                      simd::load(residual[first + i]) + simd::load(x[first + i]) * factor[i]);
      } else {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
          simd::store(y[first + i], simd::load(x[first + i]) * factor[i]);
      }
    }
  });
}

template <class A>
void dropout_backward(Queue& queue, const DropoutBackward& a) {
  residual_forward<A>(queue, as_residual(a));
}

GPTBENCH_RESIDUAL_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
