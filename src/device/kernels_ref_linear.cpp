#include "device/kernels_ref.h"

namespace gptbench::ref {

template <class A, class S>
void linear_forward(Queue&, const LinearForward& a) {
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t n = 0; n < a.N; ++n) {
      double sum = a.bias != nullptr ? load<A>(a.bias, n) : 0.0;
      for (int64_t k = 0; k < a.K; ++k)
        sum += load<A>(a.x, r * a.K + k) * load<A>(a.weight, n * a.K + k);
      store<A>(a.y, r * a.N + n, sum);
    }
}

template <class A, class S>
void linear_backward_input(Queue&, const LinearBackwardInput& a) {
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t k = 0; k < a.K; ++k) {
      double sum = a.accumulate ? load<A>(a.dx, r * a.K + k) : 0.0;
      for (int64_t n = 0; n < a.N; ++n)
        sum += load<A>(a.dy, r * a.N + n) * load<A>(a.weight, n * a.K + k);
      store<A>(a.dx, r * a.K + k, sum);
    }
}

template <class A, class S>
void linear_backward_weight(Queue&, const LinearBackwardWeight& a) {
  for (int64_t n = 0; n < a.N; ++n)
    for (int64_t k = 0; k < a.K; ++k) {
      double sum = load<S>(a.dweight, n * a.K + k);
      for (int64_t r = 0; r < a.R; ++r)
        sum += load<A>(a.dy, r * a.N + n) * load<A>(a.x, r * a.K + k);
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
