#include <algorithm>

#include "base/random.h"
#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void draw_weights(Queue&, const DrawWeights& a) {
  float numbers[1024];
  for (int64_t begin = 0; begin < a.n; begin += 1024) {
    const int64_t count = std::min<int64_t>(1024, a.n - begin);
    if (a.ones)
      std::fill_n(numbers, count, 1.0f);
    else
      fill_normal(numbers, count, a.seed, RandomStream::weights, a.tensor,
                  a.first + static_cast<uint64_t>(begin), a.std);
    for (int64_t i = 0; i < count; ++i)
      store_as<A, S>(a.type, a.y, begin + i, static_cast<double>(numbers[i]));
  }
}

GPTBENCH_WEIGHTS_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
