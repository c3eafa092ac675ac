// Elementary functions that compilers vectorise inside `#pragma omp simd` loops on any vector unit:
// no table, no branch, no library call, no option that relaxes IEEE arithmetic.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/dtype.h"

namespace gptbench::simd {

inline float bits_to_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t float_to_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// exp(x) within 2 ulp for x in [-87.3, 88.3]; 0 below, exp(88.3) above; NaN gives NaN.
// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln(2) / 2, with ln 2 in two parts so that n ln 2
// is exact (Cody and Waite, 1980), and the Taylor polynomial of degree 7, whose rest is below 1e-8.
inline float exp(float x) {
  constexpr float lowest = -87.3f;
  constexpr float highest = 88.3f;
  constexpr float largest = 2.2295e38f;  // exp(88.3)
  constexpr float log2_e = 1.44269504089f;
  constexpr float ln2_high = 0.693359375f;
  constexpr float ln2_low = -2.12194440e-4f;
  // Adding 1.5 2^23 leaves the rounded integer in the low bits of the sum.
  constexpr float rounding = 12582912.0f;

  const float shifted = x * log2_e + rounding;
  const float n = shifted - rounding;
  const float r = (x - n * ln2_high) - n * ln2_low;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const float power = bits_to_float((float_to_bits(shifted) << 23) + 0x3f800000u);
  // Beyond the ends the bits above mean nothing; NaN fails both comparisons and stays.
  const float value = x > highest ? largest : p * power;
  return x < lowest ? 0.0f : value;
}

// 2^x within 3 ulp for x in [-100, 127]; 0 below, so that what it is multiplied with does not fall
// among the subnormal numbers, with which processors are slow; meaningless above; NaN gives NaN.
// 2^x = 2^n 2^r,
// n = round(x), |r| <= 1/2, 2^r a polynomial of degree 5 with p(0) = 1 whose relative
// error, 9.2e-8, is the least possible; n is added to its exponent.
inline float exp2(float x) {
  constexpr float rounding = 12582912.0f;  // as in exp()
  const float shifted = x + rounding;
  const float r = x - (shifted - rounding);
  float p = 1.3264727e-3f;
  p = p * r + 9.6715130e-3f;
  p = p * r + 5.5507336e-2f;
  p = p * r + 2.4022242e-1f;
  p = p * r + 6.9314700e-1f;
  p = p * r + 1.0f;
  const float value = bits_to_float(float_to_bits(p) + (float_to_bits(shifted) << 23));
  return x < -100.0f ? 0.0f : value;
}

// tanh(x) within 4 ulp: below 0.625 in magnitude the polynomial of Cephes (Moshier, tanhf), above
// it 1 - 2 / (exp(2x) + 1). NaN gives NaN.
inline float tanh(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = x + x * z * p;
  const float large = 1.0f - 2.0f / (exp(2.0f * x) + 1.0f);
  return z < 0.390625f ? small : large;
}

// How exact a function is: to some units of the last place of float, or, where the result is kept
// in 8 bits, to 2^-12, an eighth of what rounding to bf16 may lose at least.
enum class Accuracy { full, bf16 };
template <class A>
constexpr Accuracy accuracy_of() {
  return std::is_same_v<A, bfloat16> ? Accuracy::bf16 : Accuracy::full;
}

// The interval of what a loop evaluates a function on. Known to the compiler, comparisons with its
// ends would be taken for branches to constant results, and those for masks of everything that
// follows; hidden from it, they are one instruction each.
struct Interval {
  float lowest, highest;

  static Interval symmetric(float end) {
    const volatile float hidden = end;
    const float known = hidden;
    return {-known, known};
  }
  // x, or the end that it lies beyond; NaN stays NaN.
  float nearest(float x) const {
    x = highest < x ? highest : x;
    return lowest > x ? lowest : x;
  }
};

// 2^n for an integer -126 <= n <= 127 that has been rounded by adding this: it leaves n and the
// bias of exponents in the low bits of the sum.
constexpr float rounding_to_exponent = 12582912.0f + 127.0f;  // 1.5 2^23 + 127
inline float power_of_sum(float shifted) {
  return bits_to_float(float_to_bits(shifted) << 23);
}

// exp(x) as `significand` 2^n for x in [-87.3, 88.3], NaN stays NaN. x is not tested.
struct Exponential {
  float significand, power;
};

// exp(x) = 2^t, t = x log2 e, n = round(t), by the polynomial of degree 3, 4 or 5 in t - n whose
// relative error is the least possible on [-1/2, 1/2]: 7.5e-5, 2.6e-6 and 1.6e-7 with coefficients
// in float. To this comes what rounding x log2 e does: |x| 2^-24.
template <int degree>
[[gnu::always_inline]] inline Exponential exp_by_powers_of_two(float x) {
  constexpr float log2_e = 1.44269504089f;
  const float shifted = x * log2_e + rounding_to_exponent;
  const float r = x * log2_e - (shifted - rounding_to_exponent);
  float p;
  if constexpr (degree == 3) {
    p = 5.51716691e-2f;
    p = p * r + 2.42611122e-1f;
    p = p * r + 6.93260985e-1f;
    p = p * r + 9.99928074e-1f;
  } else if constexpr (degree == 4) {
    p = 9.57010191e-3f;
    p = p * r + 5.59178604e-2f;
    p = p * r + 2.40247448e-1f;
    p = p * r + 6.93121815e-1f;
    p = p * r + 9.99999261e-1f;
  } else {
    static_assert(degree == 5, "polynomials of degree 3, 4 and 5");
    p = 1.32764720e-3f;
    p = p * r + 9.67554133e-3f;
    p = p * r + 5.55071327e-2f;
    p = p * r + 2.40221197e-1f;
    p = p * r + 6.93146967e-1f;
    p = p * r + 1.00000007f;
  }
  return {p, power_of_sum(shifted)};
}

// Accuracy::full: within 2 ulp, reduced as in exp() and left to 1 + r + r^2 q(r), q of degree 4
// with the least relative error, 3e-9.
template <Accuracy accuracy>
[[gnu::always_inline]] inline Exponential exponential(float x) {
  if constexpr (accuracy == Accuracy::bf16) return exp_by_powers_of_two<3>(x);
  constexpr float log2_e = 1.44269504089f;
  constexpr float ln2_high = 0.693359375f;
  constexpr float ln2_low = -2.12194440e-4f;
  const float shifted = x * log2_e + rounding_to_exponent;
  const float n = shifted - rounding_to_exponent;
  const float r = (x - n * ln2_high) - n * ln2_low;
  float p = 1.38146132e-3f;
  p = p * r + 8.36870982e-3f;
  p = p * r + 4.16683874e-2f;
  p = p * r + 1.66665207e-1f;
  p = p * r + 4.99999935e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return {p, power_of_sum(shifted)};
}

// 1 / x for x in [2^-125, 2^126], within 2 ulp or 1.3e-4; NaN gives NaN. Divisions of vectors take
// longer than all the rest of such a loop. The exponent's complement, with the significand taken as
// linear, is good to h = 0.0506; a step of third order leaves h^3, and one of Newton before it h^6,
// 1.7e-8.
template <Accuracy accuracy>
[[gnu::always_inline]] inline float reciprocal(float x) {
  float r = bits_to_float(0x7ef311c0u - float_to_bits(x));
  float h = 1.0f - x * r;
  if constexpr (accuracy == Accuracy::full) {
    r = r * h + r;
    h = 1.0f - x * r;
  }
  return r * (h * h + h) + r;
}

// 1 / (1 + exp(-x)) and one less that, to the same relative accuracy: within 8 ulp, or 2^-12, for
// |x| <= sigmoid_end, where it is 0 or 1 in float; NaN gives NaN. x is not tested.
constexpr float sigmoid_end = 87.0f;
struct Sigmoid {
  float value, complement;
};
template <Accuracy accuracy>
[[gnu::always_inline]] inline Sigmoid sigmoid(float x) {
  const Exponential e = exponential<accuracy>(-x);
  const float value = reciprocal<accuracy>(e.significand * e.power + 1.0f);
  return {value, e.significand * e.power * value};
}

// Sine and cosine of `quarters` quarter turns, |quarters| < 2^31, within 1e-7: the whole quarters
// are taken off in double, so that large angles lose nothing, the rest, at most pi/4, is left to
// Taylor polynomials to x^9 and x^8 in float.
struct SinCos {
  float sin, cos;
};
inline SinCos sincos_quarters(double quarters) {
  // Adding 1.5 2^52 leaves the rounded integer in the low bits of the sum.
  constexpr double rounding = 6755399441055744.0;
  const double shifted = quarters + rounding;
  uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const float x = static_cast<float>(quarters - (shifted - rounding)) * 1.57079632679f;
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
  const uint32_t quadrant = static_cast<uint32_t>(bits);
  const bool swap = (quadrant & 1u) != 0;
  const float sine = swap ? c : s;
  const float cosine = swap ? s : c;
  return {(quadrant & 2u) != 0 ? -sine : sine, ((quadrant + 1u) & 2u) != 0 ? -cosine : cosine};
}

// Sum and maximum of f(i), i = 0 .. n - 1, in `lanes` independent chains, so that they are bound by
// the throughput of additions and not by their latency. The order depends on n alone. Inlined by
// force: a call inside keeps compilers from vectorising.
constexpr int64_t lanes = 64;

template <class Function>
[[gnu::always_inline]] inline float sum_of(int64_t n, const Function& f) {
  const int64_t whole = n / lanes * lanes;
  float part[lanes] = {};
  for (int64_t i = 0; i < whole; i += lanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) part[lane] += f(i + lane);
  }
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t lane = 0; lane < lanes; ++lane) sum += part[lane];
  float rest = 0.0f;
#pragma omp simd reduction(+ : rest)
  for (int64_t i = whole; i < n; ++i) rest += f(i);
  return sum + rest;
}

inline float larger(float a, float b) {
  return a > b ? a : b;
}

template <class Function>
[[gnu::always_inline]] inline float max_of(int64_t n, const Function& f) {
  constexpr float none = -std::numeric_limits<float>::infinity();
  const int64_t whole = n / lanes * lanes;
  float part[lanes];
#pragma omp simd
  for (int64_t lane = 0; lane < lanes; ++lane) part[lane] = none;
  for (int64_t i = 0; i < whole; i += lanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) part[lane] = larger(f(i + lane), part[lane]);
  }
  float largest = none;
#pragma omp simd reduction(max : largest)
  for (int64_t lane = 0; lane < lanes; ++lane) largest = larger(part[lane], largest);
#pragma omp simd reduction(max : largest)
  for (int64_t i = whole; i < n; ++i) largest = larger(f(i), largest);
  return largest;
}

// f(value of storage type `type`), `type` that of A or float's.
template <class A, class Function>
void with_type(DType type, const Function& f) {
  if (type == dtype_of<A>())
    f(A{});
  else
    f(float{});
}

// Element as float; float rounded once to the storage type.
inline float load(float value) {
  return value;
}
inline float load(bfloat16 value) {
  return bits_to_float(static_cast<uint32_t>(value.bits) << 16);
}
inline float load(float16 value) {
  return static_cast<float>(value);
}
inline void store(float& out, float value) {
  out = value;
}
// As bfloat16's constructor, but for NaNs with a payload that arithmetic never makes: those of
// processors, and those that come from bf16 operands, stay NaN without a test.
inline void store(bfloat16& out, float value) {
  const uint32_t u = float_to_bits(value);
  out.bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
inline void store(float16& out, float value) {
  out.bits = float16::bits_of(value);
}

}  // namespace gptbench::simd
