#include "record/calibration.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

// The table of nccl-tests, doc/PERFORMANCE.md.
TEST(BusFactor, OfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 2), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor("reduce_scatter", 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor("all_gather", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("send", 8), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 1), 0.0);
  EXPECT_DOUBLE_EQ(bus_factor("send", 1), 0.0);
  EXPECT_DOUBLE_EQ(bus_factor("all_gather", 0), 0.0);
}

}  // namespace
}  // namespace gptbench
