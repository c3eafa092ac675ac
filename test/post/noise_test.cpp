#include "post/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "made_record.h"
#include "record/steps.h"

namespace gptbench {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

// Coverage by hand: 1 - 2 (C(n,0) + ... + C(n,k)) / 2^n with k values left out on each side.
TEST(MedianBounds, OrderStatisticsWithTheirCoverage) {
  const MedianBounds of_five = median_bounds(one_to(5));
  EXPECT_EQ(of_five.least, 1.0);
  EXPECT_EQ(of_five.largest, 5.0);
  EXPECT_NEAR(of_five.coverage, 1.0 - 2.0 / 32.0, 1e-12);
  const MedianBounds of_ten = median_bounds(one_to(10));  // k = 1; k = 2 would cover 89%
  EXPECT_EQ(of_ten.least, 2.0);
  EXPECT_EQ(of_ten.largest, 9.0);
  EXPECT_NEAR(of_ten.coverage, 1.0 - 2.0 * 11.0 / 1024.0, 1e-12);
  const MedianBounds of_twenty = median_bounds(one_to(20));  // k = 5: the usual table's 6 and 15
  EXPECT_EQ(of_twenty.least, 6.0);
  EXPECT_EQ(of_twenty.largest, 15.0);
  EXPECT_EQ(median_bounds({3.0}).coverage, 0.0);
  const MedianBounds of_many = median_bounds(one_to(100000));
  EXPECT_GT(of_many.coverage, 0.95);
  EXPECT_GT(of_many.least, 49000.0);
}

// Two samples of one distribution: the chance of bounds of 95% that do not touch is under 1%; of
// 2000 pairs 20 are expected at most, and more than 40 would be 4.5 standard deviations beyond.
TEST(RatioBounds, SeldomBeyondNoiseWithoutADifference) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> skewed(0.0, 0.5);
  int beyond = 0;
  for (int pair = 0; pair < 2000; ++pair) {
    std::vector<double> a, b;
    for (int i = 0; i < 12; ++i) {
      a.push_back(skewed(random));
      b.push_back(skewed(random));
    }
    beyond += ratio_bounds(a, b).beyond_noise();
  }
  EXPECT_LE(beyond, 40);
}

TEST(RatioBounds, OneDisturbedStepDoesNotHideADifference) {
  std::vector<double> a(12, 1.0), b(12, 1.1);
  a[3] = 7.0;
  b[8] = 0.1;
  const RatioBounds bounds = ratio_bounds(a, b);
  EXPECT_TRUE(bounds.beyond_noise());
  EXPECT_DOUBLE_EQ(bounds.least, 1.1);
  EXPECT_DOUBLE_EQ(bounds.largest, 1.1);
  EXPECT_FALSE(ratio_bounds({1.0}, b).known);
  EXPECT_FALSE(ratio_bounds({0.0, 0.0}, b).known);  // no ratio
  // The least and the largest of five values hold the median in 94 of 100 samples, of six in 97.
  EXPECT_FALSE(ratio_bounds({1.0, 1.0, 1.0, 1.0, 1.0}, b).beyond_noise());
  EXPECT_TRUE(ratio_bounds({1.0, 1.0, 1.0, 1.0, 1.0, 1.0}, b).beyond_noise());
}

// Quantiles of a printed table.
TEST(RunBounds, StudentsT) {
  EXPECT_NEAR(student_t(1, 0.95), 12.706, 1e-3);
  EXPECT_NEAR(student_t(2, 0.95), 4.3027, 1e-4);
  EXPECT_NEAR(student_t(4, 0.95), 2.7764, 1e-4);
  EXPECT_NEAR(student_t(8, 0.95), 2.3060, 1e-4);
  EXPECT_NEAR(student_t(100, 0.95), 1.9840, 1e-4);
  EXPECT_NEAR(student_t(1e6, 0.95), 1.9600, 1e-4);
  EXPECT_NEAR(student_t(2, 0.99), 9.9248, 1e-3);
  EXPECT_NEAR(student_t(8, 0.99), 3.3554, 1e-4);
}

TEST(RunBounds, NeedThreePositiveRuns) {
  EXPECT_FALSE(ratio_bounds_of_runs({1.0}, {1.0}).known);
  EXPECT_FALSE(ratio_bounds_of_runs({}, {1.0, 1.1, 1.2}).known);
  EXPECT_FALSE(ratio_bounds_of_runs({0.0, 1.0}, {1.0, 1.1}).known);
  EXPECT_TRUE(ratio_bounds_of_runs({1.0}, {1.0, 1.1}).known);
  EXPECT_EQ(ratio_bounds_of_runs({1.0, 1.0}, {1.0, 1.0}).least, 1.0);
}

// A single run is taken to vary as the others do: (1 + 1 / 3) times their variance, with two
// degrees of freedom; 9.9248 is Student's t of 99 %. The bounds are the same the other way round,
// inverted.
TEST(RunBounds, OfASingleRunAgainstThree) {
  const std::vector<double> three = {std::exp(-0.01), 1.0, std::exp(0.01)};
  const double half = 9.9248 * 0.01 * std::sqrt(4.0 / 3.0);
  const RatioBounds of_b = ratio_bounds_of_runs({1.0}, three);
  EXPECT_NEAR(std::log(of_b.least), -half, 1e-5);
  EXPECT_NEAR(std::log(of_b.largest), half, 1e-5);
  const RatioBounds of_a = ratio_bounds_of_runs(three, {1.0});
  EXPECT_NEAR(of_a.least, of_b.least, 1e-12);
  EXPECT_NEAR(of_a.largest, of_b.largest, 1e-12);
}

// How many of `trials` comparisons of `runs` runs with as many find a difference of at least 1.5 %,
// as `gptpost compare` does. Medians of runs vary by `deviation`, those of B take `factor` times as
// long.
int found(int trials, double deviation, double factor, unsigned seed, int runs = 5) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0.0, deviation);
  int count = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> a, b;
    for (int run = 0; run < runs; ++run) {
      a.push_back(1.0 + noise(random));
      b.push_back(factor * (1.0 + noise(random)));
    }
    const RatioBounds bounds = ratio_bounds_of_runs(a, b);
    count += bounds.beyond_noise() && std::fabs(bounds.middle() - 1.0) >= 0.015;
  }
  return count;
}

// The promise of `gptpost compare`: 48 of 50 slowdowns of 3 % are found and 1 of 50 alarms is
// false, where runs vary by up to 0.7 % (standard deviation), or by 1.2 % with ten runs. Rates over
// 2,000 trials: what is promised must hold in nearly all sets of 50.
TEST(RunBounds, FindASlowdownOfThreePercentInFiveRuns) {
  for (const double deviation : {0.002, 0.005, 0.007}) {
    EXPECT_GE(found(2000, deviation, 1.03, 1), 1970) << deviation;
    EXPECT_LE(found(2000, deviation, 1.0, 2), 14) << deviation;
  }
  EXPECT_GE(found(2000, 0.012, 1.03, 1, 10), 1970);
  for (unsigned seed = 0; seed < 10; ++seed) {
    EXPECT_GE(found(50, 0.007, 1.03, seed), 48) << seed;
    EXPECT_LE(found(50, 0.007, 1.0, seed), 1) << seed;
  }
}

// Where runs vary by so much that a difference of 3 % is hardly ever found, alarms stay rare.
TEST(RunBounds, AreSilentOnANoisyMachine) {
  for (const double deviation : {0.015, 0.03, 0.1})
    EXPECT_LE(found(2000, deviation, 1.0, 3), 30) << deviation;
}

TEST(TimedSteps, WithoutTheWarmUpAndSkippedSteps) {
  Record r = made_record();  // warm-up 1
  EXPECT_EQ(timed_step_times(r), (std::vector<double>{31.5, 32.0, 33.0}));
  r.steps.skipped = {0, 0, 1, 0};
  EXPECT_EQ(timed_step_times(r), (std::vector<double>{31.5, 33.0}));
  r.steps.warmup_steps = 9;  // a run that ended before
  EXPECT_TRUE(timed_step_times(r).empty());
}

}  // namespace
}  // namespace gptbench
