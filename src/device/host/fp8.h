// fp8 copies on a host: of arrays, and of values that kernels store.
#pragma once

#include <algorithm>

#include "base/fp8.h"
#include "device/arguments_types.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"

namespace gptbench::host {

// |x| as an integer: positive floats are ordered like their bits. 0 for NaN.
inline int32_t magnitude_of(float x) {
  const int32_t bits = static_cast<int32_t>(simd::float_to_bits(x) & 0x7fffffffu);
  return bits > 0x7f800000 ? 0 : bits;
}

// y = fp8(scale x) of n elements; returns the largest |x|.
template <class A>
float quantize_block(uint8_t* y, const A* x, int64_t n, float scale, Fp8Format format) {
  int32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    const float value = simd::load(x[i]);
    const int32_t magnitude = magnitude_of(value);
    largest = magnitude > largest ? magnitude : largest;
    y[i] = fp8_encode(scale * value, format);
  }
  return simd::bits_to_float(static_cast<uint32_t>(largest));
}

// f(i), i = 0 .. count - 1, in any order; amax[0] = max(amax[0], results), or results are ignored
// where amax is null. Results are kept on the stack, `most` at a time.
template <class F>
void parallel_with_amax(const char* name, int64_t count, float* amax, const F& f) {
  if (amax == nullptr) return parallel(name, count, [=](int64_t i) { f(i); });
  constexpr int64_t most = 1024;
  float results[most];
  float* const to = results;
  for (int64_t first = 0; first < count; first += most) {
    const int64_t here = std::min(most, count - first);
    parallel(name, here, [=](int64_t i) { to[i] = f(first + i); });
    for (int64_t i = 0; i < here; ++i) amax[0] = std::max(amax[0], to[i]);
  }
}

// Destination of a row that is computed piece by piece: its array, an fp8 copy, or both.
template <class A>
class Fp8Row {
 public:
  static constexpr int64_t max_piece = 4096;

  // Row r of [R, C]. Where `array` is null, which requires a copy, `scratch` holds one piece.
  Fp8Row(A* array, const Fp8Copy& copy, A* scratch, int64_t r, int64_t C)
      : y_(array != nullptr ? array + r * C : nullptr),
        scratch_(scratch),
        copy_(copy.y != nullptr ? static_cast<uint8_t*>(copy.y) + r * C : nullptr),
        scale_(copy.wanted() ? copy.scale[0] : 1.0f),
        format_(fp8_format(copy.type)) {}

  // Memory for at most max_piece elements from column c on; done() once they are assigned.
  A* piece(int64_t c) const { return y_ != nullptr ? y_ + c : scratch_; }
  void done(int64_t c, int64_t n) {
    if (copy_ != nullptr)
      largest_ = std::max(largest_, quantize_block(copy_ + c, piece(c), n, scale_, format_));
  }
  float largest() const { return largest_; }

 private:
  A* y_;
  A* scratch_;
  uint8_t* copy_;
  float scale_;
  Fp8Format format_;
  float largest_ = 0.0f;
};

// Computes an array [R, M C], which may be null, and its fp8 copy. f(out, r, c, n) assigns row r,
// columns m C + c .. m C + c + n - 1, to out[m][0 .. n-1] for each m < M. f may read those elements
// of `array`.
template <int M, class A, class F>
void make_copied(const char* name, A* array, const Fp8Copy& copy, int64_t R, int64_t C,
                 const F& f) {
  constexpr int64_t tile = 64, width = 1024 / M;
  uint8_t* const y = static_cast<uint8_t*>(copy.y);
  uint8_t* const transposed = static_cast<uint8_t*>(copy.y_transposed);
  float* const sums = static_cast<float*>(copy.sums);
  const float scale = copy.scale[0];
  const Fp8Format format = fp8_format(copy.type);
  const int64_t row = M * C, padded = padded_rows(R);
  // The codes of a piece; returns its largest magnitude.
  const auto make = [=](A(&values)[M][width], uint8_t(&codes)[M][width], int64_t r, int64_t c,
                        int64_t n) {
    A* out[M];
    for (int m = 0; m < M; ++m) out[m] = values[m];
    f(out, r, c, n);
    float largest = 0.0f;
    for (int m = 0; m < M; ++m) {
      const int64_t at = r * row + m * C + c;
      if (array != nullptr) std::copy(values[m], values[m] + n, array + at);
      largest = std::max(largest, quantize_block(codes[m], values[m], n, scale, format));
      if (y != nullptr) std::copy(codes[m], codes[m] + n, y + at);
    }
    return largest;
  };
  if (transposed == nullptr && sums == nullptr) {
    parallel_with_amax(name, R, copy.amax, [=](int64_t r) {
      A values[M][width];
      uint8_t codes[M][width];
      float largest = 0.0f;
      for (int64_t c = 0; c < C; c += width)
        largest = std::max(largest, make(values, codes, r, c, std::min(width, C - c)));
      return largest;
    });
    return;
  }
  // One thread per tile of columns, so that it writes whole rows of the transposed copy. Sums run
  // as in bias_backward: blocks of rows are added in order.
  parallel_with_amax(name, ceil_div(C, tile), copy.amax, [=](int64_t block) {
    const int64_t c0 = block * tile, n = std::min(tile, C - c0);
    A values[M][width];
    uint8_t codes[M][width];
    float part[M][tile] = {}, largest = 0.0f;
    for (int64_t r = 0; r < R; ++r) {
      largest = std::max(largest, make(values, codes, r, c0, n));
      for (int m = 0; m < M && transposed != nullptr; ++m)
        for (int64_t c = 0; c < n; ++c) transposed[(m * C + c0 + c) * padded + r] = codes[m][c];
      if (sums == nullptr) continue;
      const bool block_ends = (r + 1) % row_block == 0 || r + 1 == R;
      for (int m = 0; m < M; ++m)
        for (int64_t c = 0; c < n; ++c) {
          part[m][c] += simd::load(values[m][c]);
          if (!block_ends) continue;
          sums[m * C + c0 + c] += part[m][c];
          part[m][c] = 0.0f;
        }
    }
    for (int m = 0; m < M && transposed != nullptr; ++m)
      for (int64_t c = 0; c < n; ++c) {
        uint8_t* const row_of = transposed + (m * C + c0 + c) * padded;
        std::fill(row_of + R, row_of + padded, uint8_t{0});
      }
    return largest;
  });
}

}  // namespace gptbench::host
