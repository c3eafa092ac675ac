#include "base/column_unit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/units.h"

namespace gptbench {
namespace {

TEST(ColumnUnit, IsThatOfTheLargestValue) {
  EXPECT_STREQ(bytes_unit(1023).name, "B");
  EXPECT_STREQ(bytes_unit(1024).name, "KiB");
  EXPECT_STREQ(bytes_unit(MiB).name, "MiB");
  EXPECT_STREQ(bytes_unit(10 * GiB - 1).name, "MiB");
  EXPECT_STREQ(bytes_unit(10 * GiB).name, "GiB");
  EXPECT_STREQ(seconds_unit(0.9e-3).name, "us");
  EXPECT_STREQ(seconds_unit(1e-3).name, "ms");
  EXPECT_STREQ(seconds_unit(1.0).name, "s");
  EXPECT_STREQ(seconds_unit(7200.0).name, "s");
  EXPECT_STREQ(flop_unit(0.0).name, "FLOP");
  EXPECT_STREQ(flop_unit(999e9).name, "GFLOP");
  EXPECT_EQ(flop_unit(1e12).text(2.5e9), "0.0025 TFLOP");
}

// As the formats of single values print it, up to a hundred seconds.
TEST(ColumnUnit, TheLargestValueReadsAsAlone) {
  for (const int64_t bytes : {int64_t{1}, int64_t{1536}, 33 * MiB, 12 * GiB})
    EXPECT_EQ(bytes_unit(bytes).text(bytes), format_bytes(bytes));
  for (const double seconds : {42e-6, 0.6878, 3.17})
    EXPECT_EQ(seconds_unit(seconds).text(seconds), format_seconds(seconds));
  EXPECT_EQ(seconds_unit(725.0).text(725.0), "725.00 s");
}

TEST(ColumnUnit, SmallValuesShowAndZeroIsZero) {
  const ColumnUnit mib = bytes_unit(33 * MiB);
  EXPECT_EQ(mib.text(int64_t{182784}), "0.17 MiB");
  EXPECT_EQ(mib.text(int64_t{1536}), "0.0015 MiB");
  EXPECT_EQ(mib.text(int64_t{272}), "0.0003 MiB");
  EXPECT_EQ(mib.text(int64_t{16}), "<0.0001 MiB");
  EXPECT_EQ(mib.text(int64_t{0}), "0 MiB");
  EXPECT_EQ(bytes_unit(700).text(int64_t{7}), "7 B");
  const ColumnUnit ms = seconds_unit(0.6878);
  EXPECT_EQ(ms.text(42e-6), "0.042 ms");
  EXPECT_EQ(ms.text(1e-9), "<0.0001 ms");
  EXPECT_EQ(seconds_unit(3.0).text(0.6), "0.60 s");
  EXPECT_EQ(seconds_unit(9e-4).text(7.2e-6), "7.2 us");
  EXPECT_EQ(ms.text(std::nan("")), "unknown");
}

}  // namespace
}  // namespace gptbench
