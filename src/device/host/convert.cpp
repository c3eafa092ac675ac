#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"

namespace gptbench::host {
namespace {

template <class Y, class X>
void convert_elements(Y* y, const X* x, int64_t n, bool accumulate) {
  if (accumulate) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) simd::store(y[i], simd::load(y[i]) + simd::load(x[i]));
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) simd::store(y[i], simd::load(x[i]));
  }
}

}  // namespace

template <class A>
void convert(Queue&, const Convert& a) {
  const bool packed = a.y_row == a.C && a.x_row == a.C;
  const int64_t R = packed ? 1 : a.R;
  const int64_t C = packed ? a.R * a.C : a.C;
  const int64_t y_row = a.y_row, x_row = a.x_row;
  const bool accumulate = a.accumulate;
  const int64_t blocks = ceil_div(C, block_elements);
  simd::with_type<A>(a.y_type, [&](auto y_of) {
    using Y = decltype(y_of);
    simd::with_type<A>(a.x_type, [&](auto x_of) {
      using X = decltype(x_of);
      Y* const y = static_cast<Y*>(a.y);
      const X* const x = static_cast<const X*>(a.x);
      parallel("gptbench::convert", R * blocks, [=](int64_t item) {
        const int64_t r = item / blocks, first = item % blocks * block_elements;
        convert_elements(y + r * y_row + first, x + r * x_row + first,
                         std::min(block_elements, C - first), accumulate);
      });
    });
  });
}

GPTBENCH_CONVERT_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
