#include "device/gemm_onednn.h"
#include "device/host_parallel.h"
#include "device/kernels_host.h"
#include "device/simd_math.h"

namespace gptbench::host {
namespace {

// sum[n] += sum over rows of dy[R,N]. A thread owns columns; blocks of rows are added in order.
template <class A>
void add_column_sums(float* sum, const A* dy, int64_t R, int64_t N) {
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
      for (int64_t n = 0; n < width; ++n) sum[n0 + n] += part[n];
    }
  });
}

}  // namespace

template <class A>
void linear_forward(Queue&, const LinearForward& a) {
  if (a.R == 0) return;
  run_gemm({simd::type_of<A>(),
            simd::type_of<A>(),
            a.R,
            a.N,
            a.K,
            {a.x, a.K, false},
            {a.weight, a.K, true},
            a.y,
            a.N,
            a.bias,
            false},
           a.workspace);
}

template <class A>
void linear_backward_input(Queue&, const LinearBackwardInput& a) {
  if (a.R == 0) return;
  run_gemm({simd::type_of<A>(),
            simd::type_of<A>(),
            a.R,
            a.K,
            a.N,
            {a.dy, a.N, false},
            {a.weight, a.K, false},
            a.dx,
            a.K,
            nullptr,
            a.accumulate},
           a.workspace);
}

template <class A>
void linear_backward_weight(Queue&, const LinearBackwardWeight& a) {
  if (a.R == 0) return;
  run_gemm({simd::type_of<A>(),
            DType::f32,
            a.N,
            a.K,
            a.R,
            {a.dy, a.N, true},
            {a.x, a.K, false},
            a.dweight,
            a.K,
            nullptr,
            true},
           a.workspace);
  if (a.dbias != nullptr)
    add_column_sums(static_cast<float*>(a.dbias), static_cast<const A*>(a.dy), a.R, a.N);
}

template <class A>
void bias_backward(Queue&, const BiasBackward& a) {
  add_column_sums(static_cast<float*>(a.dbias), static_cast<const A*>(a.dy), a.R, a.N);
}

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(linear_forward, LinearForward);
GPTBENCH_HOST_KERNEL(linear_backward_input, LinearBackwardInput);
GPTBENCH_HOST_KERNEL(linear_backward_weight, LinearBackwardWeight);
GPTBENCH_HOST_KERNEL(bias_backward, BiasBackward);
}  // namespace gptbench
