#include <cmath>

#include "device/ref/kernels.h"

namespace gptbench::ref {
namespace {

constexpr double sqrt_2_over_pi = 0.79788456080286535588;
constexpr double cubic = 0.044715;

// Rows of C elements among n; C is 0 where there is no fp8 copy, which alone needs rows.
int64_t rows_of(int64_t n, int64_t C) {
  return C > 0 ? n / C : 0;
}

}  // namespace

template <class A, class S>
void gelu_forward(Queue&, const GeluForward& a) {
  const Fp8Elements<A, S> y(a.y, a.fp8, rows_of(a.n, a.C), a.C);
  for (int64_t i = 0; i < a.n; ++i) {
    const double x = load<A>(a.x, i);
    const double t = std::tanh(sqrt_2_over_pi * (x + cubic * x * x * x));
    y.put(i, 0.5 * x * (1.0 + t));
  }
}

template <class A, class S>
void gelu_backward(Queue&, const GeluBackward& a) {
  const Fp8Elements<A, S> dx(a.dx, a.fp8, rows_of(a.n, a.C), a.C);
  for (int64_t i = 0; i < a.n; ++i) {
    const double x = load<A>(a.x, i);
    const double t = std::tanh(sqrt_2_over_pi * (x + cubic * x * x * x));
    const double dt = (1.0 - t * t) * sqrt_2_over_pi * (1.0 + 3.0 * cubic * x * x);
    dx.put(i, load<A>(a.dy, i) * (0.5 * (1.0 + t) + 0.5 * x * dt));
  }
}

template <class A, class S>
void swiglu_forward(Queue&, const SwigluForward& a) {
  const Fp8Elements<A, S> y(a.y, a.fp8, a.R, a.F);
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t f = 0; f < a.F; ++f) {
      const double gate = load<A>(a.x, 2 * r * a.F + f);
      const double value = load<A>(a.x, (2 * r + 1) * a.F + f);
      y.put(r * a.F + f, gate / (1.0 + std::exp(-gate)) * value);
    }
}

template <class A, class S>
void swiglu_backward(Queue&, const SwigluBackward& a) {
  const Fp8Elements<A, S> dx(a.dx, a.fp8, a.R, 2 * a.F);
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t f = 0; f < a.F; ++f) {
      const double gate = load<A>(a.x, 2 * r * a.F + f);
      const double value = load<A>(a.x, (2 * r + 1) * a.F + f);
      const double dy = load<A>(a.dy, r * a.F + f);
      const double sigmoid = 1.0 / (1.0 + std::exp(-gate));
      dx.put(2 * r * a.F + f, dy * value * sigmoid * (1.0 + gate * (1.0 - sigmoid)));
      dx.put((2 * r + 1) * a.F + f, dy * gate * sigmoid);
    }
}

template <class A, class S>
void tanh_forward(Queue&, const TanhForward& a) {
  for (int64_t i = 0; i < a.n; ++i) store<A>(a.y, i, std::tanh(load<A>(a.x, i)));
}

template <class A, class S>
void tanh_backward(Queue&, const TanhBackward& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    const double y = load<A>(a.y, i);
    store<A>(a.dx, i, load<A>(a.dy, i) * (1.0 - y * y));
  }
}

GPTBENCH_ACTIVATION_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
