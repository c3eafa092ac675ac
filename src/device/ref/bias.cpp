#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void bias_backward(Queue&, const BiasBackward& a) {
  for (int64_t n = 0; n < a.N; ++n) {
    double sum = load<S>(a.dbias, n);
    for (int64_t r = 0; r < a.R; ++r) sum += load<A>(a.dy, r * a.N + n);
    store<S>(a.dbias, n, sum);
  }
}

GPTBENCH_BIAS_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
