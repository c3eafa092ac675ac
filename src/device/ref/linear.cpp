// The verification of a run waits for these GEMMs, so four terms of a sum are added at a time.
#include <algorithm>

#include "device/ref/kernels.h"

namespace gptbench::ref {
namespace {

constexpr int64_t chunk = 256;  // elements of a row summed at a time, so that nothing is allocated

// A factor of a GEMM: element [row, column] of type A or fp8; stored rows have `columns` elements.
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

// sums[i] += sum_k x[k] weight[i K + k], i = 0 .. 3.
template <class A>
void add_four_dots(double (&sums)[4], const A* x, const A* weight, int64_t K) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (int64_t k = 0; k < K; ++k) {
    const double factor = load<A>(x, k);
    s0 += factor * load<A>(weight, k);
    s1 += factor * load<A>(weight, K + k);
    s2 += factor * load<A>(weight, 2 * K + k);
    s3 += factor * load<A>(weight, 3 * K + k);
  }
  sums[0] += s0;
  sums[1] += s1;
  sums[2] += s2;
  sums[3] += s3;
}

// sum[k] += sum_m factor(m) element(m, k), m < terms, k < width.
template <class Left, class Right>
void add_products(double* sum, int64_t width, int64_t terms, const Left& factor,
                  const Right& element) {
  int64_t m = 0;
  for (; m + 4 <= terms; m += 4) {
    const double f0 = factor(m), f1 = factor(m + 1), f2 = factor(m + 2), f3 = factor(m + 3);
#pragma omp simd
    for (int64_t k = 0; k < width; ++k)
      sum[k] += (f0 * element(m, k) + f1 * element(m + 1, k)) +
                (f2 * element(m + 2, k) + f3 * element(m + 3, k));
  }
  for (; m < terms; ++m) {
    const double f = factor(m);
    for (int64_t k = 0; k < width; ++k) sum[k] += f * element(m, k);
  }
}

// As above for columns k0 and on of a factor [terms, columns].
template <class A, class Left>
void add_products(double* sum, int64_t width, int64_t terms, const Left& left,
                  const Factor<A>& right, int64_t k0) {
  if (right.inverse == nullptr) {
    const A* const first = static_cast<const A*>(right.data) + k0;
    const int64_t row = right.columns;
    add_products(sum, width, terms, left,
                 [=](int64_t m, int64_t k) { return load<A>(first, m * row + k); });
  } else {
    add_products(sum, width, terms, left, [&](int64_t m, int64_t k) { return right(m, k0 + k); });
  }
}

}  // namespace

template <class A, class S>
void linear_forward(Queue&, const LinearForward& a) {
  const Factor<A> x{a.x, a.fp8.left, DType::fp8_e4m3, false, a.K};
  const Factor<A> weight{a.weight, a.fp8.right, DType::fp8_e4m3, false, a.K};
  const auto put = [&](int64_t r, int64_t n, double sum) {
    store<A>(a.y, r * a.N + n, sum + (a.bias != nullptr ? load<A>(a.bias, n) : 0.0));
  };
  for (int64_t r = 0; r < a.R; ++r) {
    int64_t n = 0;
    for (; x.inverse == nullptr && n + 4 <= a.N; n += 4) {
      double sums[4] = {};
      add_four_dots(sums, static_cast<const A*>(a.x) + r * a.K,
                    static_cast<const A*>(a.weight) + n * a.K, a.K);
      for (int64_t i = 0; i < 4; ++i) put(r, n + i, sums[i]);
    }
    for (; n < a.N; ++n) {
      double sum = 0.0;
      for (int64_t k = 0; k < a.K; ++k) sum += x(r, k) * weight(n, k);
      put(r, n, sum);
    }
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
      double sum[chunk] = {};
      add_products(
          sum, width, a.N, [&](int64_t n) { return dy(r, n); }, weight, k0);
      for (int64_t k = 0; k < width; ++k) store<A>(a.dx, to + k, sum[k]);
    }
}

template <class A, class S>
void linear_backward_weight(Queue& queue, const LinearBackwardWeight& a) {
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
      for (int64_t k = 0; k < width; ++k) sum[k] = a.accumulate ? load<S>(a.dweight, to + k) : 0.0;
      add_products(
          sum, width, a.R, [&](int64_t r) { return dy(r, n); }, x, k0);
      for (int64_t k = 0; k < width; ++k) store<S>(a.dweight, to + k, sum[k]);
    }
  if (a.dbias != nullptr) bias_backward<A, S>(queue, {a.dbias, a.dy, a.R, a.N});
}

template <class A, class S>
void linear_gelu_forward(Queue& queue, const LinearGeluForward& f) {
  linear_forward<A, S>(queue, f.linear);
  gelu_forward<A, S>(queue, {f.activation, f.linear.y, f.linear.R * f.linear.N});
}

template <class A, class S>
void linear_gelu_backward_input(Queue& queue, const LinearGeluBackwardInput& f) {
  linear_backward_input<A, S>(queue, f.linear);
  gelu_backward<A, S>(queue, {f.linear.dx, f.linear.dx, f.pre, f.linear.R * f.linear.K});
  if (f.dbias != nullptr)
    bias_backward<A, S>(queue, {f.dbias, f.linear.dx, f.linear.R, f.linear.K});
}

GPTBENCH_LINEAR_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
