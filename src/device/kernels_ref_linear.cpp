#include "device/kernels_ref.h"

namespace gptbench::ref {
namespace {

// A factor of a product: element [row, column], A or fp8; `columns` of a row as stored.
template <class A>
struct Factor {
  const void* data;
  const float* inverse;  // null: A
  DType type;
  bool transposed;
  int64_t columns;

  double operator()(int64_t row, int64_t column) const {
    const int64_t i = transposed ? column * columns + row : row * columns + column;
    return inverse == nullptr ? load<A>(data, i) : load_fp8(data, type, inverse, i);
  }
};

}  // namespace

template <class A, class S>
void linear_forward(Queue&, const LinearForward& a) {
  const Factor<A> x{a.x, a.fp8.left, DType::fp8_e4m3, false, a.K};
  const Factor<A> weight{a.weight, a.fp8.right, DType::fp8_e4m3, false, a.K};
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t n = 0; n < a.N; ++n) {
      double sum = a.bias != nullptr ? load<A>(a.bias, n) : 0.0;
      for (int64_t k = 0; k < a.K; ++k) sum += x(r, k) * weight(n, k);
      store<A>(a.y, r * a.N + n, sum);
    }
}

template <class A, class S>
void linear_backward_input(Queue&, const LinearBackwardInput& a) {
  const bool transposed = a.fp8.transposed;
  const Factor<A> dy{a.dy, a.fp8.left, DType::fp8_e5m2, false, a.N};
  const Factor<A> weight{a.weight, a.fp8.right, DType::fp8_e4m3, transposed,
                         transposed ? a.N : a.K};
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t k = 0; k < a.K; ++k) {
      double sum = a.accumulate ? load<A>(a.dx, r * a.K + k) : 0.0;
      for (int64_t n = 0; n < a.N; ++n) sum += dy(r, n) * weight(n, k);
      store<A>(a.dx, r * a.K + k, sum);
    }
}

template <class A, class S>
void linear_backward_weight(Queue&, const LinearBackwardWeight& a) {
  const bool transposed = a.fp8.transposed;
  const Factor<A> dy{a.dy, a.fp8.left, DType::fp8_e5m2, transposed,
                     transposed ? padded_rows(a.R) : a.N};
  const Factor<A> x{a.x, a.fp8.right, DType::fp8_e4m3, transposed,
                    transposed ? padded_rows(a.R) : a.K};
  for (int64_t n = 0; n < a.N; ++n)
    for (int64_t k = 0; k < a.K; ++k) {
      double sum = load<S>(a.dweight, n * a.K + k);
      for (int64_t r = 0; r < a.R; ++r) sum += dy(r, n) * x(r, k);
      store<S>(a.dweight, n * a.K + k, sum);
    }
  if (a.dbias == nullptr) return;
  for (int64_t n = 0; n < a.N; ++n) {
    double sum = load<S>(a.dbias, n);
    for (int64_t r = 0; r < a.R; ++r) sum += load<A>(a.dy, r * a.N + n);
    store<S>(a.dbias, n, sum);
  }
}

template <class A, class S>
void bias_backward(Queue&, const BiasBackward& a) {
  for (int64_t n = 0; n < a.N; ++n) {
    double sum = load<S>(a.dbias, n);
    for (int64_t r = 0; r < a.R; ++r) sum += load<A>(a.dy, r * a.N + n);
    store<S>(a.dbias, n, sum);
  }
}

}  // namespace gptbench::ref

namespace gptbench {
GPTBENCH_REF_KERNEL(linear_forward, LinearForward);
GPTBENCH_REF_KERNEL(linear_backward_input, LinearBackwardInput);
GPTBENCH_REF_KERNEL(linear_backward_weight, LinearBackwardWeight);
GPTBENCH_REF_KERNEL(bias_backward, BiasBackward);
}  // namespace gptbench
