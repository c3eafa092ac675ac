#include "post/cells.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

TEST(Cells, FixedKeepsSignificantDigitsOfSmallNumbers) {
  EXPECT_EQ(fixed(7718.04, 1), "7718.0");
  EXPECT_EQ(fixed(0.5608, 2), "0.56");
  EXPECT_EQ(fixed(0.0567, 2), "0.057");
  EXPECT_EQ(fixed(0.00432, 2), "0.0043");
  EXPECT_EQ(fixed(0.0, 2), "0.00");
  EXPECT_EQ(fixed(-0.00432, 2), "-0.0043");
}

// The aggregate PetaFLOPs of the published tables, two and three significant digits.
TEST(Cells, SignificantNeverReadsZero) {
  EXPECT_EQ(significant(0.56 / 1024, 2, 4), "0.0005");
  EXPECT_EQ(significant(0.66 / 1024, 2, 4), "0.0006");
  EXPECT_EQ(significant(0.38 * 512 / 1024, 2, 4), "0.19");
  EXPECT_EQ(significant(0.50 * 512 / 1024, 2, 4), "0.25");
  EXPECT_EQ(significant(0.42 * 256 / 1024, 3, 4), "0.105");
  EXPECT_EQ(significant(0.40 * 512 / 1024, 3, 4), "0.200");
  EXPECT_EQ(significant(3.2e-7, 2, 4), "0.0000003");
  EXPECT_EQ(significant(123.4, 2, 4), "123");
  EXPECT_EQ(significant(0.0, 2, 4), "0.0");
}

TEST(Cells, TruncatedTowardsZero) {
  EXPECT_EQ(truncated(36.99), "36");
  EXPECT_EQ(truncated(0.4826), "0.483");
  EXPECT_EQ(truncated(0.0), "0");
}

TEST(Cells, ModelSizes) {
  EXPECT_EQ(model_size(124475904), "124M");
  EXPECT_EQ(model_size(1315950592), "1.3B");
  EXPECT_EQ(model_size(9950000000), "10B");
  EXPECT_EQ(model_size(12853954560), "13B");
  EXPECT_EQ(model_size(1008000000000), "1.0T");
  EXPECT_EQ(model_size(1250000), "1.2M");
  EXPECT_EQ(model_size(1000000), "1.0M");
  EXPECT_EQ(model_size(512), "512");
}

TEST(Cells, MemoryAndDates) {
  EXPECT_EQ(mebibytes(7718.0 * 1048576), "7718.0 MiB");
  EXPECT_EQ(whole_mebibytes(30760.0 * 1048576), "30760MiB");
  EXPECT_EQ(month_and_day("2024-02-15T08:00:00Z"), "02-15");
  EXPECT_EQ(month_and_day(""), "");
}

}  // namespace
}  // namespace gptbench
