#include <cmath>

#include "device/dropout.h"
#include "device/kernels_ref.h"

namespace gptbench::ref {
namespace {

constexpr double sqrt_2_over_pi = 0.79788456080286535588;
constexpr double cubic = 0.044715;

}  // namespace

template <class A, class S>
void gelu_forward(Queue&, const GeluForward& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    const double x = load<A>(a.x, i);
    const double t = std::tanh(sqrt_2_over_pi * (x + cubic * x * x * x));
    store<A>(a.y, i, 0.5 * x * (1.0 + t));
  }
}

template <class A, class S>
void gelu_backward(Queue&, const GeluBackward& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    const double x = load<A>(a.x, i);
    const double t = std::tanh(sqrt_2_over_pi * (x + cubic * x * x * x));
    const double dt = (1.0 - t * t) * sqrt_2_over_pi * (1.0 + 3.0 * cubic * x * x);
    store<A>(a.dx, i, load<A>(a.dy, i) * (0.5 * (1.0 + t) + 0.5 * x * dt));
  }
}

template <class A, class S>
void residual_forward(Queue&, const ResidualForward& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    const double x = load<A>(a.x, i) * dropout_factor(a.dropout, a.first_element + i);
    store<A>(a.y, i, a.residual != nullptr ? load<A>(a.residual, i) + x : x);
  }
}

template <class A, class S>
void dropout_backward(Queue&, const DropoutBackward& a) {
  for (int64_t i = 0; i < a.n; ++i)
    store<A>(a.dx, i, load<A>(a.dy, i) * dropout_factor(a.dropout, a.first_element + i));
}

template <class A, class S>
void cast(Queue&, const Cast& a) {
  for (int64_t i = 0; i < a.n; ++i) store<A>(a.y, i, load<S>(a.x, i));
}

}  // namespace gptbench::ref

namespace gptbench {
GPTBENCH_REF_KERNEL(gelu_forward, GeluForward);
GPTBENCH_REF_KERNEL(gelu_backward, GeluBackward);
GPTBENCH_REF_KERNEL(residual_forward, ResidualForward);
GPTBENCH_REF_KERNEL(dropout_backward, DropoutBackward);
GPTBENCH_REF_KERNEL(cast, Cast);
}  // namespace gptbench
