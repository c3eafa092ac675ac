// Dropout's factors on the device (definition: device/kernels.h; on the host: device/dropout.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "base/random.h"
#include "cuda/kernels/runtime.h"
#include "device/arguments_types.h"

namespace gptbench::cuda {

struct DropoutMask {
  Dropout dropout;
  float threshold;  // the least float at or above the rate: u >= it exactly where u >= rate
  float scale;      // of elements that are kept
  bool on;

  explicit DropoutMask(const Dropout& d)
      : dropout(d),
        threshold(static_cast<float>(d.rate)),
        scale(static_cast<float>(1.0 / (1.0 - d.rate))),
        on(d.rate > 0.0) {
    if (static_cast<double>(threshold) < d.rate) threshold = std::nextafter(threshold, 2.0f);
  }

  // out[j] = factor of element + j; N = 1, or a multiple of 4 and `element` one too.
  template <int N>
  __device__ void factors(float (&out)[N], int64_t element) const {
    const uint64_t e = static_cast<uint64_t>(element), seed = seed_of(dropout);
    const uint32_t instance = dropout.instance;
    if constexpr (N % 4 == 0) {
      GPTBENCH_UNROLL
      for (int block = 0; block < N / 4; ++block) {
        const PhiloxWords words = random_words(seed, RandomStream::dropout, instance,
                                               e / 4 + static_cast<uint64_t>(block));
        GPTBENCH_UNROLL
        for (int w = 0; w < 4; ++w)
          out[4 * block + w] = uniform_of(words.word[w]) >= threshold ? scale : 0.0f;
      }
    } else {
      static_assert(N == 1, "a multiple of four elements, or one");
      const uint32_t word = random_word(seed, RandomStream::dropout, instance, e);
      out[0] = uniform_of(word) >= threshold ? scale : 0.0f;
    }
  }
};

}  // namespace gptbench::cuda
