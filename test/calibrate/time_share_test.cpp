#include "calibrate/time_share.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gptbench
