#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void convert(Queue&, const Convert& a) {
  for (int64_t r = 0; r < a.R; ++r)
    for (int64_t c = 0; c < a.C; ++c) {
      const int64_t at = r * a.y_row + c;
      const double before = a.accumulate ? load_as<A, S>(a.y_type, a.y, at) : 0.0;
      store_as<A, S>(a.y_type, a.y, at, before + load_as<A, S>(a.x_type, a.x, r * a.x_row + c));
    }
}

GPTBENCH_CONVERT_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
