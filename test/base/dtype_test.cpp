#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace gptbench {
namespace {

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounding by its definition: of the two bfloat16 neighbours of |value|, the nearer; of two equally
// near ones that whose last bit is 0. Distances of floats that share an exponent or are neighbours
// of its border are exact in double. Above the largest bfloat16 the next neighbour is 2^128, as if
// exponents went on (IEEE 754, section 4.3.1).
uint16_t nearest_even(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint16_t below = static_cast<uint16_t>((bits >> 16) & 0x7fffu);
  if (below == 0x7f80u) return static_cast<uint16_t>(sign | below);  // infinity
  const uint16_t above = static_cast<uint16_t>(below + 1u);
  const double exact = std::fabs(static_cast<double>(value));
  const double low = float_of(static_cast<uint32_t>(below) << 16);
  const double high =
      above == 0x7f80u ? 0x1p128 : double{float_of(static_cast<uint32_t>(above) << 16)};
  const double to_low = exact - low;
  const double to_high = high - exact;
  const bool up = to_low > to_high || (to_low == to_high && (below & 1u) != 0);
  return static_cast<uint16_t>(sign | (up ? above : below));
}

TEST(DType, SizesAndNames) {
  struct Row {
    DType type;
    const char* name;
    int64_t bytes;
  };
  const Row rows[] = {
      {DType::f32, "f32", 4}, {DType::bf16, "bf16", 2},         {DType::f16, "f16", 2},
      {DType::f64, "f64", 8}, {DType::fp8_e4m3, "fp8_e4m3", 1}, {DType::fp8_e5m2, "fp8_e5m2", 1},
      {DType::i32, "i32", 4}, {DType::u16, "u16", 2},           {DType::u8, "u8", 1},
      {DType::i64, "i64", 8}};
  for (const Row& row : rows) {
    EXPECT_STREQ(name_of(row.type), row.name);
    EXPECT_EQ(size_of(row.type), row.bytes) << row.name;
  }
}

TEST(Bfloat16, EveryFiniteValueSurvives) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const float value = float_of(bits << 16);
    if (std::isnan(value)) continue;
    ASSERT_EQ(bfloat16(value).bits, bits);
    const float back = static_cast<float>(bfloat16(value));
    ASSERT_EQ(std::memcmp(&back, &value, sizeof back), 0) << std::hex << bits;
  }
}

TEST(Bfloat16, RoundsToNearestEven) {
  // The lower half of the bits decides: zero, just above it, around the tie, the last below the
  // next.
  const uint32_t lower[] = {0x0000, 0x0001, 0x7fff, 0x8000, 0x8001, 0xffff};
  for (uint32_t upper = 0; upper < 0x10000u; ++upper) {
    for (uint32_t low : lower) {
      const float value = float_of((upper << 16) | low);
      if (std::isnan(value)) continue;
      ASSERT_EQ(bfloat16(value).bits, nearest_even(value)) << std::hex << upper << " " << low;
    }
  }
}

TEST(Bfloat16, LargeFloatsBecomeInfinite) {
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bfloat16(float_of(0x7f7f7fffu)).bits, 0x7f7f);  // below the tie with 2^128
  EXPECT_EQ(bfloat16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
}

TEST(Bfloat16, NaNStaysNaN) {
  for (uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff80ffffu, 0x7fffffffu}) {
    const bfloat16 rounded(float_of(bits));
    EXPECT_TRUE(std::isnan(static_cast<float>(rounded))) << std::hex << bits;
    EXPECT_EQ(rounded.bits & 0x8000u, (bits >> 16) & 0x8000u) << "the sign is kept";
  }
}

}  // namespace
}  // namespace gptbench
