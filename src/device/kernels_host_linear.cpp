#include "device/gemm_fp8.h"
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
  if (a.fp8.left != nullptr) {
    run_gemm_fp8({dtype_of<A>(),
                  a.R,
                  a.N,
                  a.K,
                  {a.x, a.K, false, DType::fp8_e4m3, a.fp8.left},
                  {a.weight, a.K, true, DType::fp8_e4m3, a.fp8.right},
                  a.y,
                  a.N,
                  a.bias,
                  false},
                 a.workspace);
    return;
  }
  run_gemm({dtype_of<A>(),
            dtype_of<A>(),
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
  if (a.fp8.left != nullptr) {
    const bool transposed = a.fp8.transposed;
    run_gemm_fp8({dtype_of<A>(),
                  a.R,
                  a.K,
                  a.N,
                  {a.dy, a.N, false, DType::fp8_e5m2, a.fp8.left},
                  {a.weight, transposed ? a.N : a.K, transposed, DType::fp8_e4m3, a.fp8.right},
                  a.dx,
                  a.K,
                  nullptr,
                  a.accumulate},
                 a.workspace);
    return;
  }
  run_gemm({dtype_of<A>(),
            dtype_of<A>(),
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
  if (a.fp8.left != nullptr) {
    const bool transposed = a.fp8.transposed;
    const int64_t rows = padded_rows(a.R);
    run_gemm_fp8({DType::f32,
                  a.N,
                  a.K,
                  a.R,
                  {a.dy, transposed ? rows : a.N, !transposed, DType::fp8_e5m2, a.fp8.left},
                  {a.x, transposed ? rows : a.K, transposed, DType::fp8_e4m3, a.fp8.right},
                  a.dweight,
                  a.K,
                  nullptr,
                  true},
                 a.workspace);
    return;
  }
  run_gemm({dtype_of<A>(),
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
