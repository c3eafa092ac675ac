// The times of two ranks, gathered in blocks of steps as in one, in full and reduced over ranks.
#include <gtest/gtest.h>

#include "io/reduce.h"
#include "run/training.h"

namespace gptbench {
namespace {

constexpr int64_t steps = 5;

// Time of a whole step: 10 s more than of the step before, and 1 s more on the slower rank; the two
// take turns.
double step_time_s(int64_t step, int64_t rank) {
  return static_cast<double>(10 * step + (step + rank) % 2);
}

class TrainingSeriesOfRanks : public ::testing::Test {
 protected:
  // Offloading is waited for once, in step 1, by rank 1.
  // Rank 1 waits for messages 0.5 s per step. The last step is skipped.
  TrainingSeries gathered(bool reduces, int64_t steps_at_once, int64_t warmup_steps = 1) {
    std::deque<StepSample> samples(static_cast<size_t>(steps));
    for (int64_t step = 0; step < steps; ++step) {
      StepSample& sample = samples[static_cast<size_t>(step)];
      sample.result.time_s = step_time_s(step, world_.rank());
      sample.result.skipped = step == steps - 1;
      sample.times.forward_s = 0.25 * sample.result.time_s;
      sample.times.region_s[static_cast<size_t>(Region::communication)] =
          0.5 * static_cast<double>(world_.rank());
      if (step == 1 && world_.rank() == 1)
        sample.times.region_s[static_cast<size_t>(Region::offload)] = 0.5;
    }
    TimesGathering gathering;
    gathering.reduces = reduces;
    gathering.steps_at_once = steps_at_once;
    gathering.warmup_steps = warmup_steps;
    TrainingSeries series;
    gather_times(world_, samples, gathering, series);
    return series;
  }

  MpiWorld world_{nullptr, nullptr};
};

void expect_equal(const TrainingSeries& found, const TrainingSeries& expected) {
  EXPECT_EQ(found.steps.time_s, expected.steps.time_s);
  ASSERT_EQ(found.timing.size(), expected.timing.size());
  for (size_t i = 0; i < found.timing.size(); ++i) {
    const RankSeries &one = found.timing[i], &other = expected.timing[i];
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(one.values, other.values) << one.name;
    EXPECT_EQ(one.steps, other.steps) << one.name;
    EXPECT_EQ(one.ranks, other.ranks) << one.name;
    EXPECT_EQ(one.reduced, other.reduced) << one.name;
  }
}

}  // namespace

TEST_F(TrainingSeriesOfRanks, EachStepHasTheTimesOfAllRanks) {
  ASSERT_EQ(world_.size(), 2);
  const TrainingSeries series = gathered(false, steps);
  if (world_.rank() != 0) {
    EXPECT_TRUE(series.timing.empty());
    return;
  }
  EXPECT_EQ(series.steps.time_s, (std::vector<double>{1, 11, 21, 31, 41}));
  ASSERT_FALSE(series.timing.empty());
  const RankSeries& step = series.timing.front();
  EXPECT_EQ(step.name, "step");
  EXPECT_EQ(step.values, (std::vector<double>{0, 1, 11, 10, 20, 21, 31, 30, 40, 41}));
  EXPECT_EQ(step.steps, steps);
  EXPECT_EQ(step.ranks, 2);
  EXPECT_FALSE(step.reduced);
}

// Two steps at once leave a third block of one step.
TEST_F(TrainingSeriesOfRanks, BlocksOfStepsGiveTheSameSeries) {
  const TrainingSeries at_once = gathered(false, steps);
  expect_equal(gathered(false, 2), at_once);
  expect_equal(gathered(false, 1), at_once);
}

// Timed are 11, 20 and 31 s on rank 0, and 10, 21 and 30 s less 0.5 s on rank 1.
TEST_F(TrainingSeriesOfRanks, ReducedTimesKeepTheMedianOfEachRank) {
  const std::vector<double> medians = gathered(true, 2).rank_computing_s;
  if (world_.rank() == 0)
    EXPECT_EQ(medians, (std::vector<double>{20, 20.5}));
  else
    EXPECT_TRUE(medians.empty());
  EXPECT_TRUE(gathered(false, 2).rank_computing_s.empty());
  EXPECT_TRUE(gathered(true, 2, steps).rank_computing_s.empty());  // none is timed
}

TEST_F(TrainingSeriesOfRanks, BlocksAreReducedAsTheWholeSeriesIs) {
  TrainingSeries whole = gathered(false, steps);
  for (RankSeries& series : whole.timing) reduce_over_ranks(series);
  expect_equal(gathered(true, steps), whole);
  expect_equal(gathered(true, 2), whole);
}

}  // namespace gptbench
