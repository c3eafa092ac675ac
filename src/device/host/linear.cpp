#include "device/host/gemm_onednn.h"
#include "device/host/kernels.h"

namespace gptbench::host {

template <class A>
void linear_forward(Queue& queue, const LinearForward& a) {
  if (a.R == 0) return;
  const DType type = dtype_of<A>();
  const GemmFactor x{a.x, a.K, false, DType::fp8_e4m3, a.fp8.left};
  const GemmFactor weight{a.weight, a.K, true, DType::fp8_e4m3, a.fp8.right};
  Gemm gemm = make_gemm(type, {a.R, a.N, a.K}, x, weight, {a.y, a.N, type});
  gemm.bias = a.bias;
  gemm.bf16_products = bf16_products_of(queue);
  run_gemm(gemm, a.workspace);
}

template <class A>
void linear_backward_input(Queue& queue, const LinearBackwardInput& a) {
  if (a.R == 0) return;
  const DType type = dtype_of<A>();
  const bool transposed = a.fp8.transposed;
  const GemmFactor dy{a.dy, a.N, false, DType::fp8_e5m2, a.fp8.left};
  const GemmFactor weight{a.weight, transposed ? a.N : a.K, transposed, DType::fp8_e4m3,
                          a.fp8.right};
  Gemm gemm = make_gemm(type, {a.R, a.K, a.N}, dy, weight, {a.dx, a.K, type});
  gemm.bf16_products = bf16_products_of(queue);
  run_gemm(gemm, a.workspace);
}

template <class A>
void linear_backward_weight(Queue& queue, const LinearBackwardWeight& a) {
  if (a.R == 0) return;
  const bool transposed = a.fp8.transposed;
  const int64_t rows = padded_rows(a.R);
  const GemmFactor dy{a.dy, transposed ? rows : a.N, !transposed, DType::fp8_e5m2, a.fp8.left};
  const GemmFactor x{a.x, transposed ? rows : a.K, transposed, DType::fp8_e4m3, a.fp8.right};
  Gemm gemm = make_gemm(dtype_of<A>(), {a.N, a.K, a.R}, dy, x, {a.dweight, a.K, DType::f32});
  gemm.accumulate = a.accumulate;
  gemm.bf16_products = bf16_products_of(queue);
  run_gemm(gemm, a.workspace);
  if (a.dbias != nullptr && a.fp8.left == nullptr)
    bias_backward<A>(queue, {a.dbias, a.dy, a.R, a.N});
}

template <class A>
void linear_gelu_forward(Queue& queue, const LinearGeluForward& f) {
  linear_forward<A>(queue, f.linear);
  gelu_forward<A>(queue, {f.activation, f.linear.y, f.linear.R * f.linear.N});
}

template <class A>
void linear_gelu_backward_input(Queue& queue, const LinearGeluBackwardInput& f) {
  linear_backward_input<A>(queue, f.linear);
  gelu_backward<A>(queue, {f.linear.dx, f.linear.dx, f.pre, f.linear.R * f.linear.K});
  if (f.dbias != nullptr) bias_backward<A>(queue, {f.dbias, f.linear.dx, f.linear.R, f.linear.K});
}

GPTBENCH_LINEAR_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
