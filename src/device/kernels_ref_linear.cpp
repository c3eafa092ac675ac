// The verification of a run waits for these products. So the backward ones form a row of results
// side by side, each sum in the order of its equation; the forward one may add its terms in any.
#include <algorithm>

#include "device/kernels_ref.h"

namespace gptbench::ref {
namespace {

constexpr int64_t chunk = 256;  // elements of a row summed at a time, so that nothing is allocated

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

// sum_k x[r, k] weight[n, k], both stored by rows and both A or both fp8.
template <class A>
double dot(const Factor<A>& x, int64_t r, const Factor<A>& weight, int64_t n, int64_t K) {
  double sum = 0.0;
  if (x.inverse != nullptr) {
    for (int64_t k = 0; k < K; ++k) sum += x(r, k) * weight(n, k);
    return sum;
  }
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < K; ++k)
    sum += load<A>(x.data, r * K + k) * load<A>(weight.data, n * K + k);
  return sum;
}

}  // namespace

template <class A, class S>
void linear_forward(Queue&, const LinearForward& a) {
  const Factor<A> x{a.x, a.fp8.left, DType::fp8_e4m3, false, a.K};
  const Factor<A> weight{a.weight, a.fp8.right, DType::fp8_e4m3, false, a.K};
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t n = 0; n < a.N; ++n) {
      const double bias = a.bias != nullptr ? load<A>(a.bias, n) : 0.0;
      store<A>(a.y, r * a.N + n, bias + dot(x, r, weight, n, a.K));
    }
}

template <class A, class S>
void linear_backward_input(Queue&, const LinearBackwardInput& a) {
  const bool transposed = a.fp8.transposed;
  const Factor<A> dy{a.dy, a.fp8.left, DType::fp8_e5m2, false, a.N};
  const Factor<A> weight{a.weight, a.fp8.right, DType::fp8_e4m3, transposed,
                         transposed ? a.N : a.K};
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t k0 = 0; k0 < a.K; k0 += chunk) {
      const int64_t width = std::min(chunk, a.K - k0);
      const int64_t to = r * a.K + k0;
      double sum[chunk];
      for (int64_t k = 0; k < width; ++k) sum[k] = a.accumulate ? load<A>(a.dx, to + k) : 0.0;
      for (int64_t n = 0; n < a.N; ++n) {
        const double factor = dy(r, n);
        for (int64_t k = 0; k < width; ++k) sum[k] += factor * weight(n, k0 + k);
      }
      for (int64_t k = 0; k < width; ++k) store<A>(a.dx, to + k, sum[k]);
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
    for (int64_t k0 = 0; k0 < a.K; k0 += chunk) {
      const int64_t width = std::min(chunk, a.K - k0);
      const int64_t to = n * a.K + k0;
      double sum[chunk];
      for (int64_t k = 0; k < width; ++k) sum[k] = load<S>(a.dweight, to + k);
      for (int64_t r = 0; r < a.R; ++r) {
        const double factor = dy(r, n);
        for (int64_t k = 0; k < width; ++k) sum[k] += factor * x(r, k0 + k);
      }
      for (int64_t k = 0; k < width; ++k) store<S>(a.dweight, to + k, sum[k]);
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
