// The page of `compare`: its first line, figures with their bounds, groups of runs.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/error.h"
#include "has.h"
#include "made_record.h"
#include "post/commands.h"

namespace gptbench {
namespace {

std::string compare_page(const std::vector<LoadedRun>& a, const std::vector<LoadedRun>& b,
                         double min_percent) {
  return compare_groups({a, b}, min_percent);
}

// `compare` of one run each.
std::string page_of(const Record& a, const Record& b) {
  return compare_page({{"a.h5", a, {}}}, {{"b.h5", b, {}}}, 1.5);
}

// With the timed steps twice, after one of warm-up: medians, least and largest stay as they are.
Record twice(Record r) {
  const std::vector<double> time_s = r.steps.time_s;
  r.steps.time_s.insert(r.steps.time_s.end(), time_s.begin() + 1, time_s.end());
  for (RankSeries& series : r.timing) {
    const std::vector<double> values = series.values;
    series.values.insert(series.values.end(), values.begin() + series.ranks, values.end());
    series.steps = 2 * series.steps - 1;
  }
  return r;
}

// A against B: of six timed steps each, the bounds are the least and the largest: 16 / 33 and
// 17 / 31.5 of the time, their inverses of rates; TFLOP/s per device halve again, on twice the
// ranks. Forward: rank 1 of A (4, 6, 8 s) against rank 0 of B (3, 5, 7 s), 3 / 8 to 7 / 4.
TEST(Compare, EveryFigureWithItsBoundsAndWhatDiffers) {
  Record b = made_record();
  b.steps.time_s = {40.0, 16.0, 16.0, 17.0};
  b.summary.rate.sec_per_it = 16.0;
  b.summary.rate.tokens_per_s = 512.0;
  b.summary.rate.samples_per_s = 0.5;
  b.steps.loss = {10.98, 10.75, 10.1};
  b.timing[0].values = {1, 2, 3, 1, 5, 1.5, 7, 2};
  b.config.pop_back();
  set_key(b, "run", "deterministic", false);
  set_key(b, "optimizer", "lr", 1e-4);
  b.config.push_back({"moe", "experts", int64_t{8}, "1", ""});
  b.config.push_back({"output", "directory", std::string("x"), "1", ""});
  b.summary.device.power_w.reset();
  b.summary.device.memory_used_bytes = 2.704e9;
  b.summary.world_size = 4;
  EXPECT_EQ(
      page_of(twice(made_record()), twice(b)),
      R"(B is 100.0 % faster than A in tokens/s (1 and 1 run, beyond the noise of their steps).

A  a.h5
B  b.h5

figure                         A       B  B / A          bounds  B is
time per step (s)         32.000  16.000  0.500  0.485 to 0.540  better
tokens/s                   256.0   512.0  2.000  1.853 to 2.062  better
sequences/s                0.250   0.500  2.000  1.853 to 2.062  better
TFLOP/s per device (mpt)   0.110   0.110  1.000  0.926 to 1.031  same
MFU (%)                    48.90   48.90  1.000  0.926 to 1.031  same
peak memory (MiB)         2479.6  2578.7  1.040                  worse
power per device (W)        65.5       -      -
energy per token (J)      0.2500  0.2500  1.000                  same
  forward (s)             6.0000  5.0000  0.833  0.375 to 1.750  same
  optimizer (s)           0.6000  0.5000  0.833  0.375 to 1.750  same

Bounds of the ratio of medians are from the spread of the timed steps (97 % of 6
steps; 97 % of 6 steps). A difference counts where they exclude 1, of a region's
time only where it is at least 1 % of a step, and of figures without bounds
where it is at least 1 %. Runs at other times may differ by more: repeat both in
turn and compare A1.h5 A2.h5 ... -- B1.h5 B2.h5 ...
Loss: largest difference over 3 common steps 0.25.

differs            A            B
world_size         2            4
run.deterministic  true         false
optimizer.lr       0.0006       0.0001
data.source        'synthetic'  -
moe.experts        -            8
)");
}

// B takes twice the tokens per step at the same rate: its steps are no slower for that.
TEST(Compare, StepsOfOtherSizesAreNotJudged) {
  Record a = twice(made_record());
  a.summary.convergence.final_loss = 9.75;
  Record b = a;
  b.summary.tokens_per_step *= 2;
  b.summary.rate.sec_per_it *= 2.0;
  for (double& each : b.steps.time_s) each *= 2.0;
  for (double& each : b.timing[0].values) each *= 2.0;
  for (auto& each : b.summary.flops.per_step) each.second *= 2.0;
  const std::string page = page_of(a, b);
  EXPECT_TRUE(has(page, "No difference was found in tokens/s")) << page;
  EXPECT_TRUE(has(page, "  1.909 to 2.095\n")) << page;  // time per step
  EXPECT_TRUE(has(page, "  forward (s)  ")) << page;
  EXPECT_FALSE(has(page, "worse")) << page;
  EXPECT_FALSE(has(page, "\nfinal loss ")) << page;
  EXPECT_TRUE(has(page_of(a, a), "\nfinal loss "));
  EXPECT_TRUE(has(page,
                  "Times of a step are not judged and final losses left out, since the tokens per\n"
                  "step differ: A 8,192; B 16,384.\n"))
      << page;
  EXPECT_FALSE(has(page_of(a, a), "not judged"));
  EXPECT_FALSE(has(page, "Loss: "));
  EXPECT_TRUE(has(page_of(a, a), "Loss: "));
  // Nor are the fastest steps of several runs.
  const std::string several =
      compare_page({{"a.h5", a, {}}, {"a2.h5", a, {}}}, {{"b.h5", b, {}}, {"b2.h5", b, {}}}, 1.5);
  EXPECT_TRUE(has(several, "No difference was found in tokens/s")) << several;
  EXPECT_FALSE(has(several, "worse")) << several;
}

// Keys that differ behind the third digit, and a loss that is no number.
TEST(Compare, WhatIsEasilyMissed) {
  Record a = made_record(), b = made_record();
  set_key(a, "optimizer", "lr", 1.2345e-4);
  set_key(b, "optimizer", "lr", 1.2346e-4);
  EXPECT_TRUE(has(page_of(a, b), "optimizer.lr  0.00012345  0.00012346\n")) << page_of(a, b);
  b.steps.loss[2] = NAN;
  EXPECT_TRUE(has(page_of(a, b),
                  "Loss: largest difference over 2 common steps 0; not finite in B "
                  "in step 3.\n"))
      << page_of(a, b);
  EXPECT_TRUE(has(page_of(b, a), "not finite in A in step 3.\n"));
  EXPECT_TRUE(has(page_of(b, b), "not finite in both in step 3.\n"));
}

std::string first_line(const std::string& page) {
  return page.substr(0, page.find('\n'));
}

TEST(Compare, WithinAndBeyondNoise) {
  const Record a = made_record();
  Record b = made_record();
  b.steps.time_s = {40.0, 32.0, 32.5, 33.0};  // overlaps 31.5 .. 33
  b.summary.rate.sec_per_it = 32.5;
  b.summary.rate.tokens_per_s = 252.0;
  EXPECT_EQ(first_line(page_of(twice(a), twice(b))),
            "No difference was found in tokens/s: the change from A to B is -1.6 % (1 and 1 run, "
            "within the noise of their steps).");
  // With three timed steps in a run, equal runs would too often be said to differ.
  b.steps.time_s = {40.0, 34.0, 34.5, 35.0};
  EXPECT_EQ(
      first_line(page_of(twice(a), b)),
      "Not decided: the change in tokens/s from A to B is -1.6 % (1 and 1 run; fewer than six "
      "timed steps tell no difference from noise).");
  EXPECT_TRUE(
      has(page_of(twice(a), b),
          "\ntokens/s                   256.0   252.0  0.984  0.900 to 0.970  not decided\n"))
      << page_of(twice(a), b);
  // The least and the largest of n steps cover 1 - 2^(1 - n).
  b.steps.time_s = {40.0, 32.0, 32.5};
  EXPECT_TRUE(has(page_of(a, b), "75 % of 3\nsteps; 50 % of 2 steps)")) << page_of(a, b);
  b.steps.time_s = {40.0, 16.0};
  const std::string page = page_of(a, b);
  EXPECT_TRUE(has(page, "not known"));
  EXPECT_EQ(first_line(page), "B is 1.6 % slower than A in tokens/s (noise is not known).");
  EXPECT_FALSE(has(page.substr(0, page.find("forward (s)")), " to ")) << page;
}

// Of two single runs what is beyond the noise of their steps counts, whatever is the least that
// counts between groups.
TEST(Compare, ASmallDifferenceOfSingleRuns) {
  const Record a = made_record();
  Record b = made_record();
  b.steps.time_s = {40.0, 33.2, 33.2, 33.2};
  b.summary.rate.sec_per_it = 33.2;
  const std::string page = compare_page({{"a.h5", twice(a), {}}}, {{"b.h5", twice(b), {}}}, 50.0);
  const size_t row = page.find("time per step");
  ASSERT_NE(row, std::string::npos) << page;
  EXPECT_TRUE(has(page.substr(row, page.find('\n', row) - row), "worse")) << page;
}

// 1 % of a step is 0.32 s: regions that differ by less do not count, however sure.
TEST(Compare, RegionsThatHardlyMatterRaiseNoAlarm) {
  Record a = made_record(), b = made_record();
  a.timing[1].values.assign(8, 0.5);
  b.timing[1].values.assign(8, 0.8);
  EXPECT_TRUE(has(page_of(twice(a), twice(b)),
                  "  optimizer (s)           0.5000  0.8000  1.600  1.600 to "
                  "1.600  same\n"))
      << page_of(twice(a), twice(b));
  b.timing[1].values.assign(8, 0.9);
  EXPECT_TRUE(has(page_of(twice(a), twice(b)), "1.800 to 1.800  worse\n"))
      << page_of(twice(a), twice(b));
}

TEST(Compare, WhatIsNotComparableComesFirst) {
  Record b = made_record();
  set_key(b, "model", "hidden_size", int64_t{1024});
  set_key(b, "model", "preset", std::string("other"));
  EXPECT_EQ(first_line(page_of(made_record(), b)),
            "Not comparable: decks differ in model: model.hidden_size.");
  // A key is named once, however many runs differ in it.
  EXPECT_EQ(first_line(compare_page({{"a.h5", made_record(), {}}},
                                    {{"b.h5", b, {}}, {"c.h5", b, {}}}, 1.5)),
            "Not comparable: decks differ in model: model.hidden_size.");
  b.summary.device.memory_used_bytes *= 2.0;
  EXPECT_TRUE(has(page_of(made_record(), b), " 2.000\n")) << "a verdict in a row";
  b = made_record();
  b.outcome.status = "TIMEOUT";
  EXPECT_EQ(first_line(page_of(made_record(), b)), "Not comparable: b.h5 is TIMEOUT.");
  b.steps.loss.clear();
  EXPECT_FALSE(has(page_of(made_record(), b), "\n\n\n")) << page_of(made_record(), b);
  b = made_record();
  b.summary.rate.tokens_per_s = 0.0;
  EXPECT_EQ(first_line(page_of(made_record(), b)), "Not comparable: no step was timed.");
}

// 45 % of another peak is no better than 22 %.
// A run that ended before its first timed step is no run of 0 tokens/s.
TEST(Compare, ARunWithoutAFigureIsNoneOfItsMedian) {
  Record b = made_record();
  b.outcome.status = "TIMEOUT";
  b.summary.rate = {};
  const std::string page =
      compare_page({{"a1.h5", made_record(), {}}, {"a2.h5", made_record(), {}}},
                   {{"b1.h5", made_record(), {}}, {"b2.h5", b, {}}}, 1.5);
  EXPECT_EQ(first_line(page), "Not comparable: b2.h5 is TIMEOUT.");
  const size_t row = page.find("tokens/s ");
  ASSERT_NE(row, std::string::npos) << page;
  EXPECT_TRUE(has(page.substr(row, page.find('\n', row) - row), "1.000")) << page;
}

// The last losses of runs of different lengths say nothing about each other.
TEST(Compare, FinalLossesOfEquallyManySteps) {
  Record b = made_record();
  EXPECT_TRUE(has(page_of(made_record(), b), "final loss"));
  b.steps.loss.pop_back();
  EXPECT_FALSE(has(page_of(made_record(), b), "final loss"));
}

TEST(Compare, MfuOfOnePeakOnly) {
  Record b = made_record();
  b.summary.peak.tflops = 0.5;
  b.summary.peak.source = "deck";
  const std::string page = page_of(made_record(), b);
  EXPECT_FALSE(has(page, "MFU (%)")) << page;
  EXPECT_TRUE(has(page,
                  "\nMFU is left out, since the peaks differ: A 0.225 TFLOP/s (measured GEMM\n"
                  "ceiling); B 0.5 TFLOP/s (deck).\n"))
      << page;
  b.summary.flops.mfu = 0.0;  // has none of its own
  EXPECT_TRUE(has(page_of(made_record(), b), "MFU (%)"));
}

// Equal runs, of which B has its MFU by FLOPs that are fewer: it is compared by those of A.
TEST(Compare, MfuOfOneConvention) {
  Record b = made_record();
  b.summary.flops.convention = "megatron";
  b.summary.flops.mfu *= b.summary.flops.per_step["megatron"] / b.summary.flops.per_step["mpt"];
  const std::string page = page_of(made_record(), b);
  const size_t row = page.find("MFU (%)");
  ASSERT_NE(row, std::string::npos) << page;
  EXPECT_TRUE(has(page.substr(row, page.find('\n', row) - row), " 48.90   48.90  1.000 ")) << page;
}

// B begins with the third step: its losses stand beside those of A from there on, and both runs end
// after six steps.
TEST(Compare, LossesOfAResumedRun) {
  Record a = made_record(), b = made_record();
  a.steps.loss = {10.0, 9.0, 8.0, 7.0, 6.0, 5.0};
  b.summary.resumed.steps = 2;
  b.steps.loss = {8.0, 7.0, 6.0, 5.5};
  for (const std::string& page : {page_of(a, b), page_of(b, a)}) {
    EXPECT_TRUE(has(page, "Loss: largest difference over 4 common steps 0.5.\n")) << page;
    EXPECT_TRUE(has(page, "\nfinal loss ")) << page;
  }
}

TEST(Compare, ProjectionsSayThatTheyAreNoMeasurements) {
  Record b = made_record();
  b.projection.machine = "h100";
  b.outcome.verdict = "PROJECTED";
  b.steps.time_s.clear();
  b.summary.device.power_w = b.summary.device.energy_j_per_token = std::nullopt;
  Record a = made_record();
  a.summary.device.power_w = a.summary.device.energy_j_per_token = std::nullopt;
  const std::string page = page_of(a, b);
  EXPECT_FALSE(has(page, "power")) << page;
  EXPECT_FALSE(has(page, "energy")) << page;
  EXPECT_TRUE(has(page, "A  a.h5\nB  b.h5  (projected)\n")) << page;
  EXPECT_TRUE(has(page, "Noise: not known, since a run is projected ")) << page;
}

// Five runs, whose median times are `times`; 8192 tokens per step.
std::vector<LoadedRun> group_of(const std::string& name, const std::vector<double>& times) {
  std::vector<LoadedRun> group;
  for (const double time_s : times) {
    LoadedRun run{name + std::to_string(group.size() + 1) + ".h5", made_record(), {}};
    run.record.summary.rate.sec_per_it = time_s;
    run.record.summary.rate.tokens_per_s = 8192.0 / time_s;
    group.push_back(std::move(run));
  }
  return group;
}

// Variance 2.5e-4 and t = 3.355 of 8 degrees of freedom: ln 1.1 +- 3.355 sqrt(2 x 2.5e-4 / 5) is
// 1.064 to 1.138 of the time.
TEST(Compare, GroupsOfRunsByWelchsTest) {
  const std::vector<double> fast = {9.802, 9.900, 10.0, 10.101, 10.202};
  std::vector<double> slow;
  for (const double time : fast) slow.push_back(1.1 * time);
  const std::string page = compare_page(group_of("a", fast), group_of("b", slow), 1.5);
  EXPECT_EQ(first_line(page),
            "B is 9.1 % slower than A in tokens/s (5 and 5 runs, 99 % bounds -12.1 % to -6.0 %).");
  EXPECT_TRUE(has(page, "\nA  a1.h5\n   a2.h5\n")) << page;
  EXPECT_TRUE(has(page,
                  "\ntime per step (s)             10.000  11.000  1.100  1.064 to 1.138  "
                  "worse\n"))
      << page;
  EXPECT_TRUE(
      has(page,
          "they exclude 1 and it is at least 1.5 % (--least); of a region's time only where\n"
          "it is at least 1 % of a step.\n"))
      << page;
  EXPECT_FALSE(has(page, "Loss:")) << page;
  // A difference that is small, however sure.
  for (double& time : slow) time /= 1.1 / 1.01;
  std::vector<double> same(5, 10.0), later(5, 10.1);
  later[0] = 10.1001;
  EXPECT_EQ(first_line(compare_page(group_of("a", same), group_of("b", later), 1.5)).substr(0, 22),
            "No difference was foun");
  EXPECT_EQ(first_line(compare_page(group_of("a", same), group_of("b", later), 0.5)).substr(0, 19),
            "B is 0.99 % slower ");
  // One new run against five.
  EXPECT_EQ(first_line(compare_page(group_of("a", fast), group_of("b", {12.0}), 1.5)).substr(0, 19),
            "B is 16.7 % slower ");
  EXPECT_EQ(first_line(compare_page(group_of("a", fast), group_of("b", {10.2}), 1.5)).substr(0, 22),
            "No difference was foun");
}

// Two runs a side, one of which took three times as long: their bounds hold any ratio.
TEST(Compare, RunsThatBoundNothingDecideNothing) {
  const auto line = [](const std::vector<double>& a, const std::vector<double>& b) {
    return first_line(compare_page(group_of("a", a), group_of("b", b), 1.5));
  };
  EXPECT_EQ(line({10.0, 30.0}, {10.0, 30.0}),
            "Not decided: the change in tokens/s from A to B is 0.0 % (2 and 2 runs, too few or "
            "too unlike to bound it).");
  // The rows agree with that line, and fit in 80 columns.
  const std::string page =
      compare_page(group_of("a", {10.0, 30.0}), group_of("b", {10.0, 30.0}), 1.5);
  EXPECT_TRUE(has(page,
                  "\ntime per step (s)             20.000  20.000  1.000  <0.010 to >100  "
                  "not decided\n"))
      << page;
  EXPECT_TRUE(has(page,
                  "  fastest tenth of steps (s)  31.500  31.500  1.000  1.000 to 1.000  "
                  "same\n"))
      << page;
  std::istringstream rows(page.substr(page.find("\nfigure ")));
  for (std::string row; std::getline(rows, row);) EXPECT_LE(row.size(), 80U) << row;
  // 1 % from run to run: 9.92 sqrt(2 x 5e-5 / 2) is 7 %, within which no difference is seen.
  EXPECT_EQ(line({10.0, 10.1}, {10.1, 10.0}).substr(0, 28), "No difference was found in t");
  // The bounds of a difference may be as wide: it is none of noise.
  EXPECT_EQ(line({10.0, 10.1}, {1000.0, 1090.0}).substr(0, 14), "B is 99.0 % sl");
}

// A deck of its own for each of three groups, the third of which is another model.
TEST(Compare, AnswersAboutAllGroupsComeFirst) {
  const std::vector<double> times = {9.9, 10.0, 10.1};
  std::vector<std::vector<LoadedRun>> groups = {
      group_of("a", times), group_of("b", {19.8, 20.0, 20.2}), group_of("c", {4.95, 5.0, 5.05}),
      group_of("d", times)};
  for (LoadedRun& run : groups[3]) set_key(run.record, "model", "hidden_size", int64_t{1024});
  const std::string text = compare_groups(groups, 1.5);
  std::istringstream lines(text);
  std::vector<std::string> head(5);
  for (std::string& line : head) std::getline(lines, line);
  EXPECT_EQ(head[0].substr(0, 29), "B is 50.0 % slower than A in ");
  EXPECT_EQ(head[1].substr(0, 31), "C is 100.0 % faster than A in t");
  EXPECT_EQ(head[2], "Not comparable: D and A, decks differ in model: model.hidden_size.");
  EXPECT_EQ(head[3], "");
  EXPECT_EQ(head[4], "A  a1.h5");
  EXPECT_TRUE(has(text, "\nC  c1.h5\n   c2.h5\n")) << text;
  EXPECT_TRUE(has(text, "  C / A  ")) << text;
  EXPECT_TRUE(has(text, "  C is\n")) << text;
  EXPECT_TRUE(has(text, "\ndiffers            A    D\nmodel.hidden_size  768  1024\n")) << text;
  EXPECT_EQ(text.find(" is 100.0 % faster"), text.rfind(" is 100.0 % faster"));
}

// Medians that vary by 5 % from run to run; of 20 timed steps the two fastest take 0.9 and 0.92 s,
// 0.91 on average, as near as 1e-3 from run to run, and 3 % longer in B.
TEST(Compare, FastestStepsTellWhereMediansCannot) {
  const auto group = [](const std::string& name, double factor) {
    std::vector<LoadedRun> runs = group_of(name, {1.0, 1.05, 1.0, 1.1, 0.98});
    for (size_t i = 0; i < runs.size(); ++i) {
      Record& r = runs[i].record;
      r.steps.skipped.clear();
      r.steps.time_s.assign(static_cast<size_t>(r.steps.warmup_steps) + 20,
                            r.summary.rate.sec_per_it);
      const double here = factor * (1.0 + 1e-3 * static_cast<double>(i % 2));
      r.steps.time_s.front() = 0.1;  // of the warm-up
      r.steps.time_s[static_cast<size_t>(r.steps.warmup_steps)] = 0.92 * here;
      r.steps.time_s.back() = 0.90 * here;
    }
    return runs;
  };
  const std::string page = compare_page(group("a", 1.0), group("b", 1.03), 1.5);
  EXPECT_EQ(first_line(page),
            "B is 2.9 % slower than A in the fastest tenth of its steps (5 and 5 runs, 99 % "
            "bounds -3.0 % to -2.8 %); no difference was found in tokens/s.");
  EXPECT_TRUE(has(page, "\n  fastest tenth of steps (s)   0.910   0.937  1.030  ")) << page;
  EXPECT_EQ(first_line(compare_page(group("a", 1.0), group("b", 1.01), 1.5)).substr(0, 22),
            "No difference was foun");
  EXPECT_EQ(first_line(compare_page(group("a", 1.03), group("b", 1.0), 1.5)).substr(0, 26),
            "B is 3.0 % faster than A i");
}

TEST(Compare, ARunOfAGroupThatDiffersSaysSo) {
  std::vector<LoadedRun> a = group_of("a", {10, 11}), b = group_of("b", {10, 11});
  set_key(b[1].record, "optimizer", "lr", 1e-4);
  EXPECT_TRUE(has(compare_page(a, b, 1.5), "optimizer.lr  0.0006  several\n"))
      << compare_page(a, b, 1.5);
  b[1].record.outcome.verdict = "INVALID";
  EXPECT_EQ(first_line(compare_page(a, b, 1.5)), "Not comparable: b2.h5 is INVALID.");
}

}  // namespace
}  // namespace gptbench
