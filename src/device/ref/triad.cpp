#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void triad(Queue&, const Triad& t) {
  for (int64_t i = 0; i < t.n; ++i) store<S>(t.y, i, load<S>(t.a, i) + t.scale * load<S>(t.b, i));
}

GPTBENCH_TRIAD_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
