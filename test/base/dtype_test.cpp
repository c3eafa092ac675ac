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

// The value of f16 bits from their meaning: sign, 5 bits of exponent, 10 of fraction.
double value_of_half(uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 0x1fu);
  const double fraction = static_cast<double>(bits & 0x3ffu);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24)
                           : exponent < 31
                               ? std::ldexp(1024.0 + fraction, exponent - 25)
                               : (fraction == 0.0 ? INFINITY : static_cast<double>(NAN));
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

TEST(Float16, EveryValueIsExactAndSurvives) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    float16 half;
    half.bits = static_cast<uint16_t>(bits);
    const double value = static_cast<double>(static_cast<float>(half));
    const double meant = value_of_half(bits);
    if (std::isnan(meant)) {
      ASSERT_TRUE(std::isnan(value)) << std::hex << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(float16(static_cast<float>(half)))));
      continue;
    }
    ASSERT_EQ(value, meant) << std::hex << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000u) != 0) << std::hex << bits;
    ASSERT_EQ(float16(static_cast<float>(meant)).bits, bits) << std::hex << bits;
  }
}

// Between two neighbours, of which the upper may be 2^16, that is infinity: below the middle, the
// middle itself (to the even one), above it, and next to both ends.
TEST(Float16, RoundsToNearestEven) {
  for (uint32_t below = 0; below < 0x7c00u; ++below) {
    const double low = value_of_half(below);
    const double high = below == 0x7bffu ? 65536.0 : value_of_half(below + 1);
    const float middle = static_cast<float>((low + high) / 2.0);  // 12 bits: exact
    const float values[] = {std::nextafter(static_cast<float>(low), 1e6f),
                            std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e6f),
                            std::nextafter(static_cast<float>(high), 0.0f)};
    const uint32_t expected[] = {below, below, below % 2 == 0 ? below : below + 1, below + 1,
                                 below + 1};
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(float16(values[i]).bits, expected[i]) << std::hex << below << " " << i;
      ASSERT_EQ(float16(-values[i]).bits, expected[i] | 0x8000u) << std::hex << below << " " << i;
    }
  }
}

TEST(Float16, EndsOfTheRange) {
  EXPECT_EQ(static_cast<float>(float16(65504.0f)), 65504.0f);  // the largest
  EXPECT_EQ(float16(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(float16(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(float16(0x1p-24f).bits, 1);  // the smallest
  EXPECT_EQ(float16(std::numeric_limits<float>::denorm_min()).bits, 0);
  for (uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff80ffffu, 0x7fffffffu}) {
    const float16 rounded(float_of(bits));
    EXPECT_TRUE(std::isnan(static_cast<float>(rounded))) << std::hex << bits;
    EXPECT_EQ(rounded.bits & 0x8000u, (bits >> 16) & 0x8000u) << "the sign is kept";
  }
}

}  // namespace
}  // namespace gptbench
