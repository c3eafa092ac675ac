#include "device/host/kernels.h"
#include "device/host/parallel.h"

namespace gptbench::host {

template <class A>
void triad(Queue&, const Triad& t) {
  float* const y = static_cast<float*>(t.y);
  const float* const a = static_cast<const float*>(t.a);
  const float* const b = static_cast<const float*>(t.b);
  const auto scale = static_cast<float>(t.scale);
  parallel_blocks("gptbench::triad", t.n, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] = a[i] + scale * b[i];
  });
}

GPTBENCH_TRIAD_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
