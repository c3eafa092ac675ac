#include <cmath>

#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void rotary(Queue&, const Rotary& a) {
  const int64_t half = a.D / 2;
  for (int64_t r = 0; r < a.R; ++r) {
    const double position = static_cast<double>(position_of(a.positions, r % a.T_local));
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t d = 0; d < half; ++d) {
        const double exponent = -2.0 * static_cast<double>(d) / static_cast<double>(a.D);
        const double angle = (a.inverse ? -position : position) * std::pow(a.theta, exponent);
        const int64_t first = r * a.row + h * a.D + d, second = first + half;
        const double x0 = load<A>(a.x, first), x1 = load<A>(a.x, second);
        store<A>(a.x, first, x0 * std::cos(angle) - x1 * std::sin(angle));
        store<A>(a.x, second, x1 * std::cos(angle) + x0 * std::sin(angle));
      }
  }
}

GPTBENCH_ROTARY_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
