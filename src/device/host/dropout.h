// Dropout factors of many elements, vectorised (definition: kernels.h; one element: dropout.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"
#include "base/units.h"
#include "device/kernels.h"

namespace gptbench::host {

// Elements that one call of DropoutFactors::fill may assign.
constexpr int64_t dropout_chunk = 512;

class DropoutFactors {
 public:
  explicit DropoutFactors(const Dropout& dropout)
      : seed_(seed_of(dropout)),
        instance_(dropout.instance),
        scale_(static_cast<float>(1.0 / (1.0 - dropout.rate))) {
    // The uniform number of a word grows with its upper 23 bits; kept_from_ is the smallest value
    // of these that keeps an element.
    const auto kept = [&](uint32_t bits) {
      return static_cast<double>(uniform_of(bits << 9)) >= dropout.rate;
    };
    kept_from_ = static_cast<uint32_t>(dropout.rate * 0x1p23);
    while (kept_from_ > 0 && kept(kept_from_ - 1)) --kept_from_;
    while (kept_from_ < (uint32_t{1} << 23) && !kept(kept_from_)) ++kept_from_;
  }

  // out[i] = factor of element first + i, i = 0 .. count - 1, count <= dropout_chunk. Assigns.
  void fill(float* out, int64_t first, int64_t count) const {
    float factor[dropout_chunk + 4 * lanes];
    const int64_t block0 = first / 4, skip = first % 4;
    for (int64_t b = 0; 4 * b < skip + count; b += lanes) {
      Factors f;
      draw(f, [=](int64_t i) { return block0 + b + i; });
      float* const at = factor + 4 * b;
#pragma omp simd
      for (int i = 0; i < lanes; ++i)
        for (int w = 0; w < 4; ++w) at[4 * i + w] = f.of_word[w][i];
    }
    std::copy(factor + skip, factor + skip + count, out);
  }

  // out[w stride + i] = factor of element first[i] + w, w = 0 .. 3, i = 0 .. count - 1; first[i] is
  // a multiple of four. Assigns.
  void fill_fours(float* out, int64_t stride, const int64_t* first, int64_t count) const {
    for (int64_t i0 = 0; i0 < count; i0 += lanes) {
      const int64_t last = std::min<int64_t>(lanes, count - i0);
      Factors f;
      draw(f, [=](int64_t i) { return first[i0 + std::min(i, last - 1)] / 4; });
      for (int w = 0; w < 4; ++w)
        std::copy(f.of_word[w], f.of_word[w] + last, out + w * stride + i0);
    }
  }

  // out[i] = factor of element[i], i = 0 .. count - 1. Draws four words per element. Assigns.
  void fill_elements(float* out, const int64_t* element, int64_t count) const {
    for (int64_t i0 = 0; i0 < count; i0 += lanes) {
      const int64_t last = std::min<int64_t>(lanes, count - i0);
      Factors f;
      draw(f, [=](int64_t i) { return element[i0 + std::min(i, last - 1)] / 4; });
      for (int64_t i = 0; i < last; ++i) out[i0 + i] = f.of_word[element[i0 + i] % 4][i];
    }
  }

 private:
  static constexpr int lanes = 64;
  struct Factors {
    float of_word[4][lanes];
  };

  // Factors of the words of blocks block_of(0), block_of(1), ...
  template <class Function>
  [[gnu::always_inline]] void draw(Factors& factors, const Function& block_of) const {
    const uint32_t instance = instance_, kept_from = kept_from_;
    const float scale = scale_;
    uint32_t words[4][lanes];
#pragma omp simd
    for (int i = 0; i < lanes; ++i) {
      const uint64_t block = static_cast<uint64_t>(block_of(i));
      words[0][i] = static_cast<uint32_t>(block);
      words[1][i] = static_cast<uint32_t>(block >> 32);
      words[2][i] = instance;
      words[3][i] = static_cast<uint32_t>(RandomStream::dropout);
    }
    philox_lanes(words, seed_);
    for (int w = 0; w < 4; ++w) {
#pragma omp simd
      for (int i = 0; i < lanes; ++i)
        factors.of_word[w][i] = (words[w][i] >> 9) >= kept_from ? scale : 0.0f;
    }
  }

  uint64_t seed_;
  uint32_t instance_;
  uint32_t kept_from_;
  float scale_;
};

}  // namespace gptbench::host
