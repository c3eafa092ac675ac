// The two 8-bit floating-point formats of training (Micikevicius et al., arXiv:2209.05433; OCP
// OFP8), and the scales that bring a tensor into their range. Arithmetic is done in wider types.
//
//              exponent  mantissa  largest  smallest normal  subnormal   NaN             infinity
//   e4m3       4 bits    3 bits    448      2^-6             2^-9        S.1111.111      none
//   e5m2       5 bits    2 bits    57344    2^-14            2^-16       S.11111.{01-11} S.11111.00
#pragma once

#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "base/host_device.h"

namespace gptbench {

struct Fp8Format {
  int mantissa_bits, bias;
  float largest;
  uint32_t largest_code;
};
GPTBENCH_HOST_DEVICE constexpr Fp8Format fp8_format(DType type) {
  return type == DType::fp8_e5m2 ? Fp8Format{2, 15, 57344.0f, 0x7b} : Fp8Format{3, 7, 448.0f, 0x7e};
}
GPTBENCH_HOST_DEVICE constexpr bool is_fp8(DType type) {
  return type == DType::fp8_e4m3 || type == DType::fp8_e5m2;
}

// Elements from one row of a transposed array of R rows to the next: a multiple of 16 bytes.
GPTBENCH_HOST_DEVICE constexpr int64_t padded_rows(int64_t R) {
  return (R + 15) / 16 * 16;
}

// Elements from the reciprocal of one tensor's scale to that of the next: 16 bytes, since cuBLASLt
// 13.1 refuses fp8 products whose scales lie elsewhere (CUBLAS_STATUS_NOT_SUPPORTED, seen on an
// H200).
constexpr int64_t fp8_inverse_stride = 4;

// Rounds to nearest, ties to even; beyond the largest number, infinity included, to that
// (saturation, as GPUs convert in training); NaN to NaN, 0x7f. Free of branches, so that loops over
// it vectorise.
GPTBENCH_HOST_DEVICE inline uint8_t fp8_encode(float value, Fp8Format f) {
  uint32_t u;
  std::memcpy(&u, &value, sizeof u);
  const uint32_t sign = (u >> 24) & 0x80u;
  const uint32_t magnitude = u & 0x7fffffffu;
  // Normal: the bits that fall off are rounded away, which may carry into the exponent.
  const uint32_t shift = 23u - static_cast<uint32_t>(f.mantissa_bits);
  const uint32_t rounded = magnitude + ((1u << (shift - 1u)) - 1u) + ((magnitude >> shift) & 1u);
  const uint32_t normal =
      (rounded >> shift) - (static_cast<uint32_t>(127 - f.bias) << f.mantissa_bits);
  // Subnormal: multiples of 2^(1 - bias - mantissa_bits), which is one unit in the last place of
  // `shifter`; adding it rounds, and leaves the multiple in the low bits.
  const uint32_t shifter_bits = static_cast<uint32_t>(127 + 24 - f.bias - f.mantissa_bits) << 23;
  float shifter, absolute;
  std::memcpy(&shifter, &shifter_bits, sizeof shifter);
  std::memcpy(&absolute, &magnitude, sizeof absolute);
  const float sum = absolute + shifter;
  uint32_t sum_bits;
  std::memcpy(&sum_bits, &sum, sizeof sum_bits);
  const uint32_t subnormal = sum_bits - shifter_bits;
  const uint32_t smallest_normal = static_cast<uint32_t>(128 - f.bias) << 23;
  uint32_t code = magnitude < smallest_normal ? subnormal : normal;
  code = code > f.largest_code || magnitude >= 0x7f800000u ? f.largest_code : code;
  code = magnitude > 0x7f800000u ? 0x7fu : code;
  return static_cast<uint8_t>(sign | code);
}

// Exact: every fp8 number is one of binary32, and of bfloat16.
GPTBENCH_HOST_DEVICE inline float fp8_decode(uint8_t code, Fp8Format f) {
  const uint32_t magnitude = code & 0x7fu;
  const uint32_t sign = (code & 0x80u) << 24;
  const uint32_t shift = 23u - static_cast<uint32_t>(f.mantissa_bits);
  const uint32_t normal_bits = (magnitude << shift) + (static_cast<uint32_t>(127 - f.bias) << 23);
  const uint32_t unit_bits = static_cast<uint32_t>(128 - f.bias - f.mantissa_bits) << 23;
  float unit;
  std::memcpy(&unit, &unit_bits, sizeof unit);
  // Not by the bits: what would be a subnormal float is zero where those are flushed.
  const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * unit;
  uint32_t bits;
  std::memcpy(&bits, &subnormal, sizeof bits);
  bits = (magnitude >> f.mantissa_bits) != 0u ? normal_bits : bits;
  const bool infinite = f.mantissa_bits == 2 && magnitude == 0x7cu;
  const bool nan = f.mantissa_bits == 2 ? magnitude > 0x7cu : magnitude == 0x7fu;
  bits = infinite ? 0x7f800000u : nan ? 0x7fc00000u : bits;
  bits |= sign;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The largest power of two s with s amax <= the largest number of the format, times 2^-margin, kept
// within [2^-100, 2^100]; `before` where amax says nothing (0, infinite or NaN).
//
// Powers of two, because multiplying by them rounds nothing: a number that stays normal is rounded
// to the same fp8 value whatever the scale. Decompositions whose amax differs by a rounding
// therefore compute with the same numbers, and scales may be applied before a product or behind it.
GPTBENCH_HOST_DEVICE inline float fp8_scale(float amax, Fp8Format f, int margin, float before) {
  uint32_t u, largest;
  std::memcpy(&u, &amax, sizeof u);
  std::memcpy(&largest, &f.largest, sizeof largest);
  if (u < 0x00800000u || u >= 0x7f800000u) return before;  // subnormal counts as 0; negative: never
  int exponent = static_cast<int>(largest >> 23) - static_cast<int>(u >> 23);
  if ((u & 0x7fffffu) > (largest & 0x7fffffu)) --exponent;
  exponent -= margin;
  exponent = exponent > 100 ? 100 : exponent < -100 ? -100 : exponent;
  const uint32_t scale_bits = static_cast<uint32_t>(127 + exponent) << 23;
  float scale;
  std::memcpy(&scale, &scale_bits, sizeof scale);
  return scale;
}

}  // namespace gptbench
