#include "measure/timer.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

TEST(Timer, NeverStepsBack) {
  double previous = now_s();
  for (int i = 0; i < 1000; ++i) {
    const double now = now_s();
    ASSERT_GE(now, previous);
    previous = now;
  }
}

TEST(RegionTimer, AccumulatesSecondsAndCallsByRegion) {
  RegionTimer timer(3);
  EXPECT_EQ(timer.regions(), 3);
  timer.add(1, 0.25);
  timer.add(1, 0.5);
  timer.add(2, 1.0);
  EXPECT_EQ(timer.seconds(0), 0.0);
  EXPECT_EQ(timer.calls(0), 0);
  EXPECT_EQ(timer.seconds(1), 0.75);
  EXPECT_EQ(timer.calls(1), 2);
  EXPECT_EQ(timer.seconds(2), 1.0);
  timer.reset();
  EXPECT_EQ(timer.seconds(1), 0.0);
  EXPECT_EQ(timer.calls(1), 0);
  EXPECT_EQ(timer.regions(), 3);
}

// Ordered by nesting, not by any duration: outer covers inner, and both lie within the whole.
TEST(RegionTimer, OuterRegionsCoverInnerOnes) {
  RegionTimer timer(2);
  const double begin = now_s();
  {
    const TimedRegion outer(timer, 0);
    for (int i = 0; i < 3; ++i) {
      const TimedRegion inner(timer, 1);
      const double started = now_s();
      while (now_s() == started) {
      }
    }
  }
  const double whole = now_s() - begin;
  EXPECT_EQ(timer.calls(0), 1);
  EXPECT_EQ(timer.calls(1), 3);
  EXPECT_GT(timer.seconds(1), 0.0);
  // Sums of differences of doubles near the machine's uptime: rounding below 1e-8 s.
  EXPECT_GE(timer.seconds(0), timer.seconds(1) - 1e-8);
  EXPECT_GE(whole, timer.seconds(0) - 1e-8);
}

}  // namespace
}  // namespace gptbench
