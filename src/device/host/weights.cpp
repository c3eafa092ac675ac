// Weights as they are drawn at set-up; the reference's as well, whose bits are the same.
#include <algorithm>

#include "base/random.h"
#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"

namespace gptbench::host {

template <class A>
void draw_weights(Queue&, const DrawWeights& a) {
  simd::with_type<A>(a.type, [&](auto type) {
    using T = decltype(type);
    T* const y = static_cast<T*>(a.y);
    const DrawWeights draw = a;
    parallel_blocks("gptbench::draw_weights", a.n, [=](int64_t begin, int64_t end) {
      float numbers[block_elements];
      if (draw.ones)
        std::fill_n(numbers, end - begin, 1.0f);
      else
        fill_normal(numbers, end - begin, draw.seed, RandomStream::weights, draw.tensor,
                    draw.first + static_cast<uint64_t>(begin), draw.std);
      for (int64_t i = begin; i < end; ++i) simd::store(y[i], numbers[i - begin]);
    });
  });
}

GPTBENCH_WEIGHTS_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
