// Dropout of one element, the same on every device (definition: kernels.h).
#pragma once

#include <cstdint>

#include "base/random.h"
#include "device/kernels.h"

namespace gptbench {

// Factor of element e: 1 / (1 - rate) where it is kept, 0 where it is dropped.
inline double dropout_factor(const Dropout& dropout, int64_t element) {
  if (dropout.rate == 0.0) return 1.0;
  const float u = uniform_of(random_word(seed_of(dropout), RandomStream::dropout, dropout.instance,
                                         static_cast<uint64_t>(element)));
  return static_cast<double>(u) >= dropout.rate ? 1.0 / (1.0 - dropout.rate) : 0.0;
}

}  // namespace gptbench
