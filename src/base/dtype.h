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

}  // namespace gptbench
