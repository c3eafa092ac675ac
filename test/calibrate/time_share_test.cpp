#include "calibrate/time_share.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gptbench {
namespace {

TEST(TimeDivision, FollowsTheWeights) {
  TimeDivision division(100.0, 8.0);
  EXPECT_EQ(division.begin(0.0, 2.0), 25.0);
  EXPECT_EQ(division.begin(25.0, 3.0), 37.5);
  EXPECT_EQ(division.begin(62.5, 3.0), 37.5);  // the last has all that is left
}

TEST(TimeDivision, WhatAPhaseLeavesGoesToThoseBehindIt) {
  TimeDivision division(100.0, 4.0);
  division.begin(0.0, 1.0);
  EXPECT_EQ(division.begin(10.0, 1.0), 30.0);
  EXPECT_EQ(division.left_s(70.0), 30.0);
  EXPECT_EQ(division.begin(70.0, 1.0), 15.0);
}

TEST(TimeDivision, NothingIsLeftBehindTheLimit) {
  TimeDivision division(100.0, 2.0);
  EXPECT_EQ(division.left_s(130.0), 0.0);
  EXPECT_EQ(division.begin(130.0, 1.0), 0.0);
}

TEST(TimeDivision, NoPhaseHasMoreThanWhatIsLeft) {
  TimeDivision division(10.0, 1.0);
  EXPECT_EQ(division.begin(4.0, 1.5), 6.0);  // weights whose sum rounds to less than their parts
}

// Each phase needs its part of what those before it leave.
TEST(TimeDivision, TheLimitThatWouldDo) {
  EXPECT_EQ(sufficient_limit_s({{1.0, 5.0}, {1.0, 5.0}}), 10.0);
  EXPECT_EQ(sufficient_limit_s({{1.0, 10.0}, {1.0, 5.0}}), 20.0);
  EXPECT_EQ(sufficient_limit_s({{1.0, 1.0}, {3.0, 30.0}, {1.0, 2.0}}), 41.0);
  for (const double limit_s : {41.0, 40.0}) {
    TimeDivision division(limit_s, 5.0);
    EXPECT_GE(division.begin(0.0, 1.0), 1.0);
    EXPECT_EQ(division.begin(1.0, 3.0) >= 30.0, limit_s == 41.0);
  }
}

TEST(TimeShare, SpreadIsOfTheSamples) {
  EXPECT_DOUBLE_EQ(spread_of({1.0, 3.0}), std::sqrt(2.0) / 2.0);
}

}  // namespace
}  // namespace gptbench
