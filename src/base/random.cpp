#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// Compiled with -ffp-contract=off (CMakeLists.txt): contraction of a * b + c into one rounding
// would make the bits depend on the compiler.

namespace gptbench {
namespace {

// Natural logarithm of u in (0, 1). With u = m 2^e and m in [sqrt(1/2), sqrt(2)), ln m is the
// artanh series 2 (z + z^3/3 + ...), z = (m - 1) / (m + 1), |z| < 0.172: error below 1e-7 relative.
inline float log_of(float u) {
  uint32_t bits;
  std::memcpy(&bits, &u, sizeof bits);
  const uint32_t shifted = bits - 0x3f3504f3u;  // sqrt(1/2)
  const int32_t exponent = static_cast<int32_t>(shifted) >> 23;
  const uint32_t mantissa = (shifted & 0x007fffffu) + 0x3f3504f3u;
  float m;
  std::memcpy(&m, &mantissa, sizeof m);
  const float z = (m - 1.0f) / (m + 1.0f);
  const float z2 = z * z;
  float series = 2.0f / 9.0f;
  series = series * z2 + 2.0f / 7.0f;
  series = series * z2 + 2.0f / 5.0f;
  series = series * z2 + 2.0f / 3.0f;
  series = series * z2 + 2.0f;
  return static_cast<float>(exponent) * 0.69314718056f + series * z;
}

struct SinCos {
  float sin, cos;
};

// sin and cos of 2 pi u, u in (0, 1): quadrant q = round(4 u), then Taylor series of the rest,
// |x| <= pi/4, to x^9 and x^8: error below 4e-8.
inline SinCos sincos_turn(float u) {
  const float turns = 4.0f * u;
  const int32_t quadrant = static_cast<int32_t>(turns + 0.5f);
  const float x = (turns - static_cast<float>(quadrant)) * 1.57079632679f;
  const float x2 = x * x;
  float s = 1.0f / 362880.0f;
  s = s * x2 - 1.0f / 5040.0f;
  s = s * x2 + 1.0f / 120.0f;
  s = s * x2 - 1.0f / 6.0f;
  s = s * x2 + 1.0f;
  s = s * x;
  float c = 1.0f / 40320.0f;
  c = c * x2 - 1.0f / 720.0f;
  c = c * x2 + 1.0f / 24.0f;
  c = c * x2 - 0.5f;
  c = c * x2 + 1.0f;
  const bool swap = (quadrant & 1) != 0;
  const float sine = swap ? c : s;
  const float cosine = swap ? s : c;
  return {(quadrant & 2) != 0 ? -sine : sine, ((quadrant + 1) & 2) != 0 ? -cosine : cosine};
}

// Blocks are generated this many at a time so that each stage is a loop that vectorises.
constexpr int chunk_blocks = 64;

}  // namespace

void fill_normal(float* out, int64_t count, uint64_t seed, RandomStream stream, uint32_t instance,
                 uint64_t first, float std) {
  uint32_t words[4][chunk_blocks];
  float normal[4 * chunk_blocks];
  const uint64_t end = first + static_cast<uint64_t>(count);
  for (uint64_t block0 = first / 4; 4 * block0 < end; block0 += chunk_blocks) {
#pragma omp simd
    for (int i = 0; i < chunk_blocks; ++i) {
      const uint64_t block = block0 + static_cast<uint64_t>(i);
      words[0][i] = static_cast<uint32_t>(block);
      words[1][i] = static_cast<uint32_t>(block >> 32);
      words[2][i] = instance;
      words[3][i] = static_cast<uint32_t>(stream);
    }
    philox_lanes(words, seed);
    for (int pair = 0; pair < 2; ++pair) {
      const uint32_t* const radius_word = words[2 * pair];
      const uint32_t* const angle_word = words[2 * pair + 1];
      float* const to = normal + 2 * pair;
#pragma omp simd
      for (int i = 0; i < chunk_blocks; ++i) {
        const float radius = std * std::sqrt(-2.0f * log_of(uniform_of(radius_word[i])));
        const SinCos angle = sincos_turn(uniform_of(angle_word[i]));
        to[4 * i] = radius * angle.cos;
        to[4 * i + 1] = radius * angle.sin;
      }
    }
    const uint64_t begin = std::max(first, 4 * block0);
    const uint64_t stop = std::min(end, 4 * (block0 + chunk_blocks));
    std::memcpy(out + (begin - first), normal + (begin - 4 * block0),
                sizeof(float) * (stop - begin));
  }
}

}  // namespace gptbench
