#include "base/fp8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace gptbench {
namespace {

constexpr DType types[] = {DType::fp8_e4m3, DType::fp8_e5m2};

// Value of a code by the definition of the formats (OCP OFP8, tables 1 and 2).
double defined_value(DType type, int code) {
  const bool e4m3 = type == DType::fp8_e4m3;
  const int mantissa_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  const int exponent = (code & 0x7f) >> mantissa_bits;
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const double sign = code < 128 ? 1.0 : -1.0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (e4m3 && (code & 0x7f) == 0x7f) return nan;
  if (!e4m3 && exponent == 31) return mantissa == 0 ? sign * INFINITY : nan;
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1.0 + fraction, exponent - bias));
}

// The nearest of all finite values, of two that are as near the one with an even code; what lies
// beyond the largest is nearest to that.
uint8_t nearest_code(DType type, double x) {
  static const auto tables = [] {
    std::vector<std::vector<double>> all;
    for (const DType each : types) {
      std::vector<double> values;
      for (int code = 0; code < 128 && std::isfinite(defined_value(each, code)); ++code)
        values.push_back(defined_value(each, code));
      all.push_back(values);
    }
    return all;
  }();
  const std::vector<double>& values = tables[type == DType::fp8_e4m3 ? 0 : 1];
  const double magnitude = std::abs(x);
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  int64_t code = above - values.begin();
  if (above == values.end()) {
    code = static_cast<int64_t>(values.size()) - 1;
  } else if (code > 0) {
    const double to_above = *above - magnitude, to_below = magnitude - *(above - 1);
    if (to_below < to_above || (to_below == to_above && code % 2 == 1)) --code;
  }
  return static_cast<uint8_t>(code | (std::signbit(x) ? 0x80 : 0));
}

float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

TEST(Fp8, EveryCodeDecodesAsDefined) {
  for (const DType type : types)
    for (int code = 0; code < 256; ++code) {
      const double expected = defined_value(type, code);
      const float value = fp8_decode(static_cast<uint8_t>(code), fp8_format(type));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value)) << code;
        continue;
      }
      EXPECT_EQ(static_cast<double>(value), expected) << name_of(type) << " " << code;
      EXPECT_EQ(std::signbit(value), code >= 128);
      // bfloat16 holds it exactly.
      EXPECT_EQ(static_cast<float>(bfloat16(value)), value);
      if (std::isfinite(expected)) {
        EXPECT_EQ(fp8_encode(value, fp8_format(type)), code);
      }
    }
}

TEST(Fp8, LargestNumbers) {
  EXPECT_EQ(defined_value(DType::fp8_e4m3, fp8_format(DType::fp8_e4m3).largest_code), 448.0);
  EXPECT_EQ(defined_value(DType::fp8_e5m2, fp8_format(DType::fp8_e5m2).largest_code), 57344.0);
}

// All numbers of bfloat16, which is what training converts; midpoints and their neighbours; random
// bit patterns of binary32.
TEST(Fp8, RoundsToNearestEven) {
  for (const DType type : types) {
    const Fp8Format format = fp8_format(type);
    const auto expect_nearest = [&](float x) {
      ASSERT_EQ(fp8_encode(x, format), nearest_code(type, static_cast<double>(x)))
          << name_of(type) << " of " << x;
    };
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float x = from_bits(bits << 16);
      if (!std::isnan(x)) expect_nearest(x);
    }
    for (int code = 0; code < 127; ++code) {
      const double below = defined_value(type, code), above = defined_value(type, code + 1);
      if (!std::isfinite(above)) break;
      const float middle = static_cast<float>(0.5 * (below + above));
      for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
        expect_nearest(x);
        expect_nearest(-x);
      }
    }
    for (uint64_t i = 0; i < 200000; ++i) {
      const float x = from_bits(random_word(3, RandomStream::test, 0, i));
      if (!std::isnan(x)) expect_nearest(x);
    }
  }
}

TEST(Fp8, SaturatesAndKeepsNaN) {
  for (const DType type : types) {
    const Fp8Format format = fp8_format(type);
    for (const float x : {INFINITY, 1e30f, 2.0f * format.largest}) {
      EXPECT_EQ(fp8_encode(x, format), format.largest_code);
      EXPECT_EQ(fp8_encode(-x, format), format.largest_code | 0x80);
    }
    for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0x7fffffffu})
      EXPECT_EQ(fp8_encode(from_bits(bits), format) & 0x7f, 0x7f);
  }
}

// The largest power of two that keeps amax within the format.
TEST(Fp8, ScaleIsTheLargestPowerOfTwo) {
  for (const DType type : types) {
    const Fp8Format format = fp8_format(type);
    for (uint64_t i = 0; i < 10000; ++i) {
      const float amax = std::ldexp(
          1.0f + static_cast<float>(uniform_of(random_word(4, RandomStream::test, 0, i))),
          static_cast<int>(i % 160) - 80);
      const float scale = fp8_scale(amax, format, 0, 3.0f);
      ASSERT_LE(scale * amax, format.largest) << amax;
      ASSERT_GT(2.0f * scale * amax, format.largest) << amax;
      int exponent;
      ASSERT_EQ(std::frexp(scale, &exponent), 0.5f);
      ASSERT_EQ(fp8_scale(amax, format, 2, 3.0f), 0.25f * scale);
    }
    EXPECT_EQ(fp8_scale(format.largest, format, 0, 3.0f), 1.0f);
    EXPECT_EQ(fp8_scale(std::nextafter(format.largest, 1e9f), format, 0, 3.0f), 0.5f);
    for (const float nothing : {0.0f, INFINITY, std::numeric_limits<float>::quiet_NaN()})
      EXPECT_EQ(fp8_scale(nothing, format, 0, 3.0f), 3.0f);
    EXPECT_EQ(fp8_scale(1e-37f, format, 0, 3.0f), std::ldexp(1.0f, 100));
  }
}

// A scale that is a power of two does not change what a number is rounded to, as long as it stays
// normal: what decompositions rely on.
TEST(Fp8, PowersOfTwoDoNotChangeRounding) {
  for (const DType type : types) {
    const Fp8Format format = fp8_format(type);
    for (uint64_t i = 0; i < 10000; ++i) {
      const float x =
          1.0f + static_cast<float>(uniform_of(random_word(5, RandomStream::test, 0, i)));
      const float one = fp8_decode(fp8_encode(x, format), format);
      for (const float scale : {0.25f, 4.0f, 32.0f})
        ASSERT_EQ(fp8_decode(fp8_encode(scale * x, format), format) / scale, one) << x;
    }
  }
}

}  // namespace
}  // namespace gptbench
