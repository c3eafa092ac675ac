#include "base/units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "base/error.h"
#include "base/like_seconds.h"

namespace gptbench {
namespace {

TEST(Units, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(3 * MiB / 2), "1.5 MiB");
  EXPECT_EQ(format_bytes(7718 * MiB), "7718.0 MiB");
  EXPECT_EQ(format_bytes(10 * GiB), "10.00 GiB");
  EXPECT_EQ(format_bytes(94 * GiB + GiB / 4), "94.25 GiB");
}

TEST(Units, Seconds) {
  EXPECT_EQ(format_seconds(812e-6), "812 us");
  EXPECT_EQ(format_seconds(4.2e-3), "4.20 ms");
  EXPECT_EQ(format_seconds(3.17), "3.17 s");
  EXPECT_EQ(format_seconds(725.0), "12 min 05 s");
  EXPECT_EQ(format_seconds(3599.7), "1 h 00 min");
  EXPECT_EQ(format_seconds(2 * 3600.0 + 3 * 60.0), "2 h 03 min");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::quiet_NaN()), "unknown");
}

// 919 ms beside 1.12 s, and what is shorter or longer than others.
TEST(Units, TimesInTheUnitOfAnother) {
  EXPECT_EQ(format_seconds_like(1.12, 0.919), "1120.00 ms");
  EXPECT_EQ(format_seconds_like(4.2e-3, 812e-6), "4200 us");
  EXPECT_EQ(format_seconds_like(0.25, 3.17), "0.25 s");
  EXPECT_EQ(format_seconds_like(99.0, 725.0), "1 min 39 s");
  EXPECT_EQ(format_seconds_like(3540.0, 3599.7), "0 h 59 min");
  EXPECT_EQ(format_seconds_like(std::numeric_limits<double>::infinity(), 1.0), "unknown");
}

TEST(Units, Counts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(124475904), "124,475,904");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(std::numeric_limits<int64_t>::max()), "9,223,372,036,854,775,807");
}

TEST(Units, PrefixesOfTheSI) {
  EXPECT_EQ(format_si(8.6e14, "FLOP"), "860 TFLOP");
  EXPECT_EQ(format_si(0.0, "B/s"), "0 B/s");
  EXPECT_EQ(format_si(41e9, "B/s"), "41 GB/s");
  EXPECT_EQ(format_si(-1500.0, "x"), "-1.5 kx");
}

TEST(Units, ProductsThatOverflowNameWhatTheyAre) {
  const int64_t largest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(checked_product(0, largest, "a"), 0);
  EXPECT_EQ(checked_product(1, largest, "a"), largest);
  EXPECT_EQ(checked_product(int64_t{1} << 31, int64_t{1} << 31, "a"), int64_t{1} << 62);
  try {
    checked_product(int64_t{1} << 32, int64_t{1} << 31, "tokens per step");
    FAIL() << "2^63 fits no int64_t";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("tokens per step"), std::string::npos);
  }
}

TEST(Units, Rounding) {
  static_assert(round_up(0, 64) == 0, "zero is a multiple");
  static_assert(round_up(1, 64) == 64, "up");
  static_assert(round_up(64, 64) == 64, "exact");
  static_assert(round_up(50257, 128) == 50304, "padded vocabulary of GPT-2");
  static_assert(ceil_div(48, 11) == 5, "48 by 11 is 11, 11, 11, 11, 4");
  static_assert(ceil_div(44, 11) == 4, "exact");
  static_assert(ceil_div(0, 11) == 0, "nothing");
}

}  // namespace
}  // namespace gptbench
