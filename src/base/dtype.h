// Element types of buffers and files.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "base/host_device.h"

namespace gptbench {

enum class DType { f32, bf16, f16, f64, fp8_e4m3, fp8_e5m2, i32, u16, u8, i64 };

// Bytes an element.
int64_t size_of(DType type);
// "f32", "bf16", ... as printed in arena maps and result files.
const char* name_of(DType type);

// Storage type of bfloat16: the upper half of an IEEE binary32. Arithmetic is done in float.
struct bfloat16 {
  uint16_t bits;

  bfloat16() = default;
  // Round to nearest, ties to even; NaN stays NaN (quiet bit set, payload truncated).
  GPTBENCH_HOST_DEVICE explicit bfloat16(float value) {
    uint32_t u;
    std::memcpy(&u, &value, sizeof u);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(is_nan ? (u >> 16) | 0x40u : rounded);
  }
  GPTBENCH_HOST_DEVICE explicit operator float() const {
    const uint32_t u = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &u, sizeof value);
    return value;
  }
};
static_assert(sizeof(bfloat16) == 2, "bfloat16 is a storage type of two bytes");

// Storage type of IEEE binary16: 5 bits of exponent, 10 of fraction, subnormal numbers. Arithmetic
// is done in float. Both conversions are integer operations and selections, which compilers turn
// into vector code on any processor.
struct float16 {
  uint16_t bits;

  float16() = default;
  GPTBENCH_HOST_DEVICE explicit float16(float value) : bits(bits_of(value)) {}
  GPTBENCH_HOST_DEVICE explicit operator float() const {
    const uint32_t magnitude = (bits & 0x7fffu) * 0x2000u;
    const uint32_t exponent = magnitude & 0x0f800000u;
    // Infinities and NaN move to f32's largest exponent; subnormal numbers are 2^-14 (1 + fraction)
    // less 2^-14.
    const uint32_t moved = magnitude + (exponent == 0x0f800000u ? 0x70000000u
                                        : exponent == 0         ? 0x38800000u
                                                                : 0x38000000u);
    float value;
    std::memcpy(&value, &moved, sizeof value);
    const float less = exponent == 0 ? 6.103515625e-5f : 0.0f;  // 2^-14
    value -= less;
    uint32_t u;
    std::memcpy(&u, &value, sizeof u);
    u |= static_cast<uint32_t>(bits & 0x8000u) << 16;
    std::memcpy(&value, &u, sizeof value);
    return value;
  }

  // Round to nearest, ties to even; 65520 and above become infinite, NaN stays NaN (payload lost).
  GPTBENCH_HOST_DEVICE static uint16_t bits_of(float value) {
    uint32_t u;
    std::memcpy(&u, &value, sizeof u);
    const uint32_t sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    float magnitude;
    std::memcpy(&magnitude, &u, sizeof magnitude);
    // 1/2 has the spacing of f16's subnormal numbers, 2^-24, in its last place: the sum rounds.
    const float shifted = magnitude + 0.5f;
    uint32_t subnormal;
    std::memcpy(&subnormal, &shifted, sizeof subnormal);
    subnormal -= 0x3f000000u;
    // The exponent's bias becomes 15; what rounds up beyond the largest number carries to infinity.
    const uint32_t normal = (u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13;
    const uint32_t beyond = u > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint32_t rounded = u < 0x38800000u ? subnormal : u < 0x47800000u ? normal : beyond;
    return static_cast<uint16_t>(rounded | sign);
  }
};
static_assert(sizeof(float16) == 2, "float16 is a storage type of two bytes");

// DType of a storage type.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float16> {
  static constexpr DType value = DType::f16;
};
template <class T>
constexpr DType dtype_of() {
  return DTypeOf<T>::value;
}

}  // namespace gptbench
