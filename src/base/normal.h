// Normal numbers from uniform words (Box and Muller, 1958) with the same bits on every machine and
// device: IEEE additions, multiplications, divisions and square roots of float, none contracted.
// Host code that includes this is compiled with -ffp-contract=off; on a GPU the functions below
// forbid contraction themselves.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/random.h"

namespace gptbench {
namespace normal {

GPTBENCH_HOST_DEVICE inline float add(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
GPTBENCH_HOST_DEVICE inline float multiply(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
GPTBENCH_HOST_DEVICE inline float divide(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
GPTBENCH_HOST_DEVICE inline float root(float a) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(a);
#else
  return std::sqrt(a);
#endif
}

// a x + b, rounded twice.
GPTBENCH_HOST_DEVICE inline float step(float a, float x, float b) {
  return add(multiply(a, x), b);
}

// Natural logarithm of u in (0, 1). With u = m 2^e and m in [sqrt(1/2), sqrt(2)), ln m is the
// artanh series 2 (z + z^3/3 + ...), z = (m - 1) / (m + 1), |z| < 0.172: error below 1e-7 relative.
GPTBENCH_HOST_DEVICE inline float log_of(float u) {
  uint32_t bits;
  std::memcpy(&bits, &u, sizeof bits);
  const uint32_t shifted = bits - 0x3f3504f3u;  // sqrt(1/2)
  const int32_t exponent = static_cast<int32_t>(shifted) >> 23;
  const uint32_t mantissa = (shifted & 0x007fffffu) + 0x3f3504f3u;
  float m;
  std::memcpy(&m, &mantissa, sizeof m);
  const float z = divide(add(m, -1.0f), add(m, 1.0f));
  const float z2 = multiply(z, z);
  float series = 2.0f / 9.0f;
  series = step(series, z2, 2.0f / 7.0f);
  series = step(series, z2, 2.0f / 5.0f);
  series = step(series, z2, 2.0f / 3.0f);
  series = step(series, z2, 2.0f);
  return add(multiply(static_cast<float>(exponent), 0.69314718056f), multiply(series, z));
}

struct SinCos {
  float sin, cos;
};

// sin and cos of 2 pi u, u in (0, 1): quadrant q = round(4 u), then Taylor series of the rest,
// |x| <= pi/4, to x^9 and x^8: error below 4e-8.
GPTBENCH_HOST_DEVICE inline SinCos sincos_turn(float u) {
  const float turns = multiply(4.0f, u);
  const int32_t quadrant = static_cast<int32_t>(add(turns, 0.5f));
  const float x = multiply(add(turns, -static_cast<float>(quadrant)), 1.57079632679f);
  const float x2 = multiply(x, x);
  float s = 1.0f / 362880.0f;
  s = step(s, x2, -1.0f / 5040.0f);
  s = step(s, x2, 1.0f / 120.0f);
  s = step(s, x2, -1.0f / 6.0f);
  s = step(s, x2, 1.0f);
  s = multiply(s, x);
  float c = 1.0f / 40320.0f;
  c = step(c, x2, -1.0f / 720.0f);
  c = step(c, x2, 1.0f / 24.0f);
  c = step(c, x2, -0.5f);
  c = step(c, x2, 1.0f);
  const bool swap = (quadrant & 1) != 0;
  const float sine = swap ? c : s;
  const float cosine = swap ? s : c;
  return {(quadrant & 2) != 0 ? -sine : sine, ((quadrant + 1) & 2) != 0 ? -cosine : cosine};
}

struct Pair {
  float first, second;
};

// Two normal numbers of standard deviation `std` from two random words.
GPTBENCH_HOST_DEVICE inline Pair pair_of(uint32_t radius_word, uint32_t angle_word, float std) {
  const float radius = multiply(std, root(multiply(-2.0f, log_of(uniform_of(radius_word)))));
  const SinCos angle = sincos_turn(uniform_of(angle_word));
  return {multiply(radius, angle.cos), multiply(radius, angle.sin)};
}

}  // namespace normal
}  // namespace gptbench
