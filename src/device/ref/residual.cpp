#include "device/dropout.h"
#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void residual_forward(Queue&, const ResidualForward& a) {
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t c = 0; c < a.C; ++c) {
      const int64_t i = r * a.C + c;
      const double x = load<A>(a.x, i) * dropout_factor(a.dropout, global_row(a.rows, r) * a.C + c);
      store<A>(a.y, i, a.residual != nullptr ? load<A>(a.residual, i) + x : x);
    }
}

template <class A, class S>
void dropout_backward(Queue&, const DropoutBackward& a) {
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t c = 0; c < a.C; ++c) {
      const int64_t i = r * a.C + c;
      store<A>(a.dx, i,
               load<A>(a.dy, i) * dropout_factor(a.dropout, global_row(a.rows, r) * a.C + c));
    }
}

GPTBENCH_RESIDUAL_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
