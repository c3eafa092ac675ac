// Dropout factors of consecutive elements, vectorised (definition: kernels.h; one element:
// dropout.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "base/random.h"
#include "device/kernels.h"

namespace gptbench::host {

// Elements that one call may fill.
constexpr int64_t dropout_chunk = 512;

class DropoutFactors {
 public:
  // dropout.rate > 0. A kept element's uniform number is >= rate; it is a float, so that rate may
  // be rounded up to one.
  explicit DropoutFactors(const Dropout& dropout)
      : seed_(dropout.seed),
        instance_(dropout.instance),
        threshold_(static_cast<float>(dropout.rate)),
        scale_(static_cast<float>(1.0 / (1.0 - dropout.rate))) {
    if (static_cast<double>(threshold_) < dropout.rate)
      threshold_ = std::nextafter(threshold_, 2.0f);
  }

  // out[i] = factor of element first + i, i = 0 .. count - 1, count <= dropout_chunk. `out` has
  // room for dropout_chunk floats. Assigns.
  void fill(float* out, int64_t first, int64_t count) const {
    constexpr int64_t blocks = dropout_chunk / 4 + 1;
    float factor[4 * blocks];
    const int64_t block0 = first / 4;
    const int64_t skip = first % 4;
    const int64_t needed = (skip + count + 3) / 4;
#pragma omp simd
    for (int64_t i = 0; i < needed; ++i) {
      const std::array<uint32_t, 4> word = words_of(4 * (block0 + i));
      for (int w = 0; w < 4; ++w) factor[4 * i + w] = factor_of(word[w]);
    }
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) out[i] = factor[skip + i];
  }

  // out[w stride + i] = factor of element first[i] + w, w = 0 .. 3, i = 0 .. count - 1; first[i] is
  // a multiple of four. Assigns.
  void fill_fours(float* out, int64_t stride, const int64_t* first, int64_t count) const {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const std::array<uint32_t, 4> word = words_of(first[i]);
      for (int w = 0; w < 4; ++w) out[w * stride + i] = factor_of(word[w]);
    }
  }

  // out[i] = factor of element[i], i = 0 .. count - 1. Assigns.
  void fill_elements(float* out, const int64_t* element, int64_t count) const {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const std::array<uint32_t, 4> word = words_of(element[i]);
      const int64_t w = element[i] % 4;
      const uint32_t low = w == 0 ? word[0] : word[1];
      const uint32_t high = w == 2 ? word[2] : word[3];
      out[i] = factor_of(w < 2 ? low : high);
    }
  }

 private:
  std::array<uint32_t, 4> words_of(int64_t element) const {
    const uint64_t block = static_cast<uint64_t>(element) / 4;
    return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), instance_,
                   static_cast<uint32_t>(RandomStream::dropout)},
                  seed_);
  }
  float factor_of(uint32_t word) const {
    return uniform_of(word) >= threshold_ ? scale_ : 0.0f;
  }

  uint64_t seed_;
  uint32_t instance_;
  float threshold_;
  float scale_;
};

}  // namespace gptbench::host
