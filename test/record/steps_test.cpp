// Figures of a run from the times of its steps, against values computed by hand.
#include "record/steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "record/flops.h"

namespace gptbench {
namespace {

// 2 ranks, warm-up of 2, 7 steps of which 1 and 4 were skipped. Timed: steps 2, 3, 5 and 6, that
// took 4, 8, 2 and 5 s: median (4 + 5) / 2.
Record record_of_seven_steps() {
  Record r;
  r.steps.warmup_steps = 2;
  r.steps.loss = {7, 6, 5, 4, 3, 2, 1.5};
  r.steps.time_s = {100, 0.25, 4, 8, 0.5, 2, 5};
  r.steps.skipped = {0, 1, 0, 0, 1, 0, 0};
  Summary& s = r.summary;
  s.world_size = 2;
  s.tokens_per_step = 9000;
  s.flops.per_step = {{"mpt", 36e12}, {"exact", 18e12}, {"exact_recomputed", 9e12}};
  s.flops.convention = "mpt";
  s.flops.hardware_factor = 4.0 / 3.0;
  return r;
}

TEST(Steps, TimedAreThoseBehindTheWarmUpThatUpdatedWeights) {
  const Record r = record_of_seven_steps();
  for (int64_t step = 0; step < 7; ++step)
    EXPECT_EQ(is_timed(r, step), step == 2 || step == 3 || step == 5 || step == 6) << step;
  EXPECT_EQ(skipped_after_warmup(r), 1);
  Record unscaled;  // no flags where the loss is not scaled
  EXPECT_TRUE(is_timed(unscaled, 0));
  EXPECT_EQ(skipped_after_warmup(unscaled), 0);
}

TEST(Steps, RatesFollowFromTheMedianOfTimedSteps) {
  Record r = record_of_seven_steps();
  summarise_steps(r, 9);
  const Summary& s = r.summary;
  EXPECT_EQ(s.timed_steps, 4);
  EXPECT_EQ(s.skipped_steps, 2);
  EXPECT_EQ(s.convergence.final_loss, 1.5);
  EXPECT_EQ(s.rate.sec_per_it, 4.5);
  EXPECT_EQ(s.rate.sec_per_it_min, 2.0);
  EXPECT_EQ(s.rate.sec_per_it_max, 8.0);
  EXPECT_EQ(s.rate.tokens_per_s, 2000.0);                          // 9000 / 4.5
  EXPECT_EQ(s.rate.samples_per_s, 2.0);                            // 9 / 4.5
  EXPECT_DOUBLE_EQ(s.flops.model_tflops_per_device, 4.0);          // 36 / 4.5 / 2
  EXPECT_DOUBLE_EQ(s.flops.hardware_tflops_per_device, 16.0 / 3);  // 4/3 of it
  EXPECT_EQ(s.flops.fom_tflops, 0.0);  // of `causal`, which is not there
  EXPECT_EQ(s.flops.mfu, 0.0);
  set_peak(r.summary, 16.0, "deck");
  EXPECT_DOUBLE_EQ(s.flops.mfu, 0.25);
  EXPECT_DOUBLE_EQ(s.flops.hfu, 1.0 / 3.0);
  EXPECT_EQ(s.peak.source, "deck");
}

// Evaluated after 2, 4 and 6 of seven steps of 9,000 tokens that took 100 + 0.25 + 4 + 8 + 0.5 + 2
// + 5 s.
TEST(Steps, TimeToTargetIsThatOfTheStepsBeforeTheEvaluation) {
  Record r = record_of_seven_steps();
  r.steps.held_out_step = {2, 4, 6};
  r.steps.held_out_loss = {6.0, 3.5, 3.6};
  const Summary& s = r.summary;
  set_time_to_target(r, 3.0);
  EXPECT_EQ(s.convergence.held_out_loss, 3.6);
  EXPECT_EQ(s.convergence.steps_to_target, 0);
  set_time_to_target(r, 3.5);
  EXPECT_EQ(s.convergence.steps_to_target, 4);
  EXPECT_EQ(s.convergence.tokens_to_target, 36000);
  EXPECT_EQ(s.convergence.time_to_target_s, 112.25);
  // A run that continues another: the time of the first is in its checkpoint, or is not known. Its
  // steps had half the tokens.
  r = record_of_seven_steps();
  r.summary.resumed.steps = 10;
  r.summary.resumed.tokens = 45000;
  r.steps.held_out_step = {12};
  r.steps.held_out_loss = {1.0};
  set_time_to_target(r, 1.0);
  EXPECT_EQ(s.convergence.tokens_to_target, 45000 + 2 * 9000);
  EXPECT_EQ(s.convergence.time_to_target_s, 0.0);
  r.summary.resumed.steps_s = 1000.0;
  set_time_to_target(r, 1.0);
  EXPECT_EQ(s.convergence.time_to_target_s, 1100.25);
}

// A measured ceiling that varies by more than 3 % gives no utilisation; any other peak does.
TEST(Steps, UtilisationNeedsASteadyCeiling) {
  Summary s;
  s.flops.model_tflops_per_device = 50.0;
  s.flops.hardware_tflops_per_device = 60.0;
  s.gemm_ceiling = {100.0, 0.029};
  set_peak(s, 100.0, peak_source::measured);
  EXPECT_DOUBLE_EQ(s.flops.mfu, 0.5);
  EXPECT_DOUBLE_EQ(s.flops.hfu, 0.6);
  s.gemm_ceiling.spread = 0.031;
  set_peak(s, 100.0, peak_source::measured);
  EXPECT_EQ(s.flops.mfu, 0.0);
  EXPECT_EQ(s.flops.hfu, 0.0);
  set_peak(s, 100.0, peak_source::deck);
  EXPECT_DOUBLE_EQ(s.flops.mfu, 0.5);
}

// The total of all devices, whatever the deck's convention.
TEST(Steps, TheFigureOfMeritIsTheTotalByCausal) {
  Record r = record_of_seven_steps();
  r.summary.flops.per_step["causal"] = 27e12;
  summarise_steps(r, 9);
  EXPECT_DOUBLE_EQ(r.summary.flops.fom_tflops, 6.0);  // 27 / 4.5
}

// 100 steps, each of which takes 1 ms longer than the one before, around a second; three of them
// are disturbed. The rate falls from 1 / 0.9505 to 1 / 1.0495: by about 0.1 in 100 s.
TEST(Steps, DriftIsARobustSlope) {
  Record r;
  r.steps.warmup_steps = 1;
  r.steps.time_s = {9.0};
  double elapsed_s = 0.0;
  for (int step = 0; step < 100; ++step) {
    r.steps.time_s.push_back(0.9505 + 0.001 * step);
    elapsed_s += r.steps.time_s.back();
  }
  for (const size_t disturbed : {5U, 50U, 99U}) r.steps.time_s[disturbed] += 1.0;
  r.steps.loss.assign(101, 1.0);
  summarise_steps(r, 1);
  // The time of the three seconds is part of the hours.
  EXPECT_NEAR(r.summary.rate.drift_percent.value(), -10.0, 0.5);
  EXPECT_NEAR(r.summary.rate.drift_percent_per_hour.value(),
              r.summary.rate.drift_percent.value() * 3600.0 / (elapsed_s + 3.0), 1e-9);
  // Fifteen timed steps say nothing.
  r.steps.time_s.resize(16);
  r.summary.rate.drift_percent.reset();
  summarise_steps(r, 1);
  EXPECT_FALSE(r.summary.rate.drift_percent);
  r.steps.time_s.push_back(1.0);
  summarise_steps(r, 1);
  EXPECT_TRUE(r.summary.rate.drift_percent);
}

// Of sixteen steps every pair has a slope; their median, worked out anew.
TEST(Steps, DriftIsTheMedianOfTheSlopesOfAllPairs) {
  Record r = record_of_seven_steps();
  r.steps.warmup_steps = 0;
  r.steps.skipped.clear();
  r.steps.time_s = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
  r.steps.loss.assign(16, 1.0);
  summarise_steps(r, 1);
  EXPECT_EQ(r.summary.rate.sec_per_it, 5.0);
  std::vector<double> rates, middles, slopes;
  double elapsed_s = 0.0;
  for (const double time_s : r.steps.time_s) {
    rates.push_back(500.0 / time_s);  // per cent of the median's
    middles.push_back(elapsed_s + 0.5 * time_s);
    elapsed_s += time_s;
  }
  for (size_t a = 0; a < 16; ++a)
    for (size_t b = a + 1; b < 16; ++b)
      slopes.push_back((rates[b] - rates[a]) / (middles[b] - middles[a]));
  ASSERT_EQ(slopes.size(), 120u);
  std::sort(slopes.begin(), slopes.end());
  const double slope = 0.5 * (slopes[59] + slopes[60]);
  EXPECT_NEAR(r.summary.rate.drift_percent.value(), slope * elapsed_s, 1e-9);
  EXPECT_NEAR(r.summary.rate.drift_percent_per_hour.value(), slope * 3600.0, 1e-9);
}

// 6 GB in 1.5 s on two nodes; waits of 0.5 s and 1.5 s in four steps of 24.5 s.
TEST(Steps, WhatCheckpointsCost) {
  Record r;
  EXPECT_EQ(checkpoint_cost(r).stall_s, 0.0);
  EXPECT_EQ(checkpoint_cost(r).bytes_per_s, 0.0);
  r.summary.nodes = 2;
  r.summary.checkpoint.bytes = 6000000000;
  r.summary.checkpoint.write_s = 1.5;
  r.summary.checkpoint.count = 2;
  r.steps.time_s = {24.5, 24.5, 24.5, 24.5};
  r.steps.checkpoint_s = {0, 0.5, 0, 1.5};
  const CheckpointCost cost = checkpoint_cost(r);
  EXPECT_DOUBLE_EQ(cost.bytes_per_s, 4e9);
  EXPECT_DOUBLE_EQ(cost.node_bytes_per_s, 2e9);
  EXPECT_DOUBLE_EQ(cost.wait_s, 1.0);
  EXPECT_DOUBLE_EQ(cost.stall_s, 0.5);
  EXPECT_DOUBLE_EQ(cost.overhead, 0.02);
  EXPECT_EQ(stall_text(cost), "500.00 ms per step, 1.00 s per checkpoint");
  // One that is written in the background is waited for in several steps.
  r.summary.checkpoint.count = 1;
  EXPECT_DOUBLE_EQ(checkpoint_cost(r).wait_s, 2.0);
  r.summary.checkpoint.count = 0;  // of an earlier version
  EXPECT_EQ(stall_text(checkpoint_cost(r)), "500.00 ms per step");
}

TEST(Steps, AnOddCountHasAStepInTheMiddle) {
  Record r = record_of_seven_steps();
  r.steps.skipped.clear();  // timed: 4, 8, 0.5, 2 and 5
  summarise_steps(r, 9);
  EXPECT_EQ(r.summary.rate.sec_per_it, 4.0);
  EXPECT_EQ(r.summary.timed_steps, 5);
  EXPECT_EQ(median({}), 0.0);
  EXPECT_EQ(majority_deviation({}), 0.0);
  EXPECT_DOUBLE_EQ(majority_deviation({100.0, 101.0, 104.0, 90.0, 150.0}), 104.0 / 101.0 - 1.0);
  EXPECT_DOUBLE_EQ(majority_deviation({96.0, 104.0}), 1.04 - 1.0);
  EXPECT_EQ(median({NAN, 2.0, 1.0}), 2.0);  // what is no number counts as the largest
}

TEST(MeanOfSmallest, RoundsTheirNumberUp) {
  EXPECT_EQ(mean_of_smallest(0.25, {4.0, 1.0, 3.0, 2.0}), 1.0);
  EXPECT_EQ(mean_of_smallest(0.25, {5.0, 4.0, 1.0, 3.0, 2.0}), 1.5);
  std::vector<double> thirty;
  for (int i = 30; i > 0; --i) thirty.push_back(i);
  EXPECT_EQ(mean_of_smallest(0.1, thirty), 2.0);
  EXPECT_EQ(mean_of_smallest(0.1, {7.0}), 7.0);
  EXPECT_EQ(mean_of_smallest(0.1, {}), 0.0);
}

TEST(Steps, WithoutATimedStepThereAreNoRates) {
  Record all_skipped = record_of_seven_steps();
  all_skipped.steps.skipped.assign(7, 1);
  Record too_short = record_of_seven_steps();
  too_short.steps.warmup_steps = 7;
  for (Record* r : {&all_skipped, &too_short}) {
    summarise_steps(*r, 9);
    EXPECT_EQ(r->summary.timed_steps, 0);
    EXPECT_EQ(r->summary.rate.sec_per_it, 0.0);
    EXPECT_EQ(r->summary.rate.tokens_per_s, 0.0);
    EXPECT_EQ(r->summary.flops.fom_tflops, 0.0);
    EXPECT_EQ(r->summary.convergence.final_loss, 1.5);
  }
  EXPECT_EQ(all_skipped.summary.skipped_steps, 7);
}

// A damaged file may say anything in place of 1; the sum of these is beyond int64.
TEST(Steps, SkippedStepsAreCounted) {
  Record r = record_of_seven_steps();
  r.steps.skipped = {0, INT64_MAX, 0, -1, INT64_MAX, 0, 0};
  summarise_steps(r, 9);
  EXPECT_EQ(r.summary.skipped_steps, 3);
  EXPECT_EQ(r.summary.timed_steps, 3);
}

}  // namespace
}  // namespace gptbench
