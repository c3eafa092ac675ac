// What new users met: noise of the peak in MFU, MFU above 100 % without a word, runs that speed and
// MFU order differently, a table that hides what was swept. Records with given step times, figures
// by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "made_record.h"
#include "post/commands.h"
#include "post/common_peak.h"
#include "post/json.h"
#include "post/plot.h"
#include "post/style.h"
#include "record/steps.h"

namespace gptbench {
namespace {

// 0.08 TFLOP in steps of `seconds` on two ranks, as summed up from the times of the steps; against
// a GEMM ceiling measured as `ceiling` TFLOP/s.
LoadedRun timed(double seconds, double ceiling) {
  LoadedRun run;
  Record& r = run.record = made_record();
  r.steps.skipped.clear();
  r.steps.warmup_steps = 1;
  r.steps.time_s = {10.0 * seconds, seconds, seconds, seconds};
  r.summary.flops.per_step = {{"causal", 0.08e12}, {"mpt", 0.08e12}};
  r.summary.flops.convention = "causal";
  summarise_steps(r, 8);
  set_peak(r.summary, ceiling, "measured GEMM ceiling");
  return run;
}

Runs views(const std::vector<LoadedRun>& runs) {
  Runs all;
  for (const LoadedRun& run : runs) all.emplace_back(run.record);
  return all;
}

// Cells of the native table's column, a run each.
std::vector<std::string> column(const Runs& runs, const std::string& heading) {
  const Table table = native_tables(runs).at(0);
  std::vector<std::string> cells;
  for (size_t c = 0; c < table.columns.size(); ++c)
    for (const auto& row : table.rows)
      if (table.columns[c].heading == heading) cells.push_back(row[c]);
  return cells;
}

// Bars of a picture of runs with one number of ranks, in their order.
std::vector<double> bars(const Picture& picture) {
  std::vector<double> lengths;
  for (const Box& box : picture.panels.at(0).boxes) lengths.push_back(box.right);
  return lengths;
}

template <class T>
std::vector<size_t> order_of(const std::vector<T>& values) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  return order;
}

double spread(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end()) /
         *std::min_element(values.begin(), values.end());
}

// Three equal runs of 1.444, 1.466 and 1.427 s had ceilings of 0.0373, 0.0454 and 0.0413 TFLOP/s,
// which made MFU of 74.3, 60.1 and 67.9 %; tp=2 in 1.00 s had 27 % less MFU than dp=2 in 1.05 s.
// Such ceilings disagree: none of these runs has MFU, for one reason, and speed orders them.
TEST(Trials, MfuIsLeftOutWhereCeilingsDisagree) {
  for (std::vector<LoadedRun> runs :
       {std::vector<LoadedRun>{timed(1.444, 0.0373), timed(1.466, 0.0454), timed(1.427, 0.0413)},
        std::vector<LoadedRun>{timed(1.05, 0.040), timed(1.10, 0.045), timed(1.00, 0.0575)}}) {
    share_ceilings(runs);
    for (const LoadedRun& run : runs) EXPECT_EQ(run.record.summary.flops.mfu, 0.0);
    const Runs view = views(runs);
    const std::vector<std::string> reasons = reasons_without_mfu(view);
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_EQ(reasons[0].rfind("no MFU: at least half of the 3 measured GEMM ceilings are ", 0), 0u)
        << reasons[0];
    EXPECT_EQ(order_of(bars(throughput_picture(view))), (std::vector<size_t>{1, 0, 2}));
  }
}

// The same three runs with ceilings of 0.0373, 0.0418 and 0.0413 TFLOP/s, of which two agree. Their
// MFU is 74.3, 65.3 and 67.9 % by each run's own ceiling, 67.1, 66.1 and 67.9 % by the median one.
TEST(Trials, MfuOfEqualRunsSpreadsNoMoreThanTheirTimes) {
  std::vector<LoadedRun> runs = {timed(1.444, 0.0373), timed(1.466, 0.0418), timed(1.427, 0.0413)};
  const auto mfu = [&] {
    std::vector<double> all;
    for (const LoadedRun& run : runs) all.push_back(run.record.summary.flops.mfu);
    return all;
  };
  EXPECT_GT(spread(mfu()), 1.1);
  share_ceilings(runs);
  EXPECT_LE(spread(mfu()), 1.466 / 1.427 * (1.0 + 1e-12));
  EXPECT_EQ(column(views(runs), "MFU (%)"), (std::vector<std::string>{"67.1", "66.1", "67.9"}));
  const std::vector<double> drawn = bars(utilisation_picture(views(runs)));
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_LE(spread(drawn), 1.466 / 1.427 * (1.0 + 1e-12));
}

// 0.04 TFLOP per rank in 1 s are 110.9 % of 0.03607 TFLOP/s, and 99.0 % of 0.0404.
TEST(Trials, MfuAboveOneHundredPercentIsNeverBare) {
  for (const bool above : {true, false}) {
    const std::vector<LoadedRun> runs = {timed(1.0, above ? 0.03607 : 0.0404)};
    const Runs view = views(runs);
    EXPECT_EQ(column(view, "MFU (%)"), std::vector<std::string>{above ? "110.9" : "99.0"});
    const auto warns = [](const std::string& text) {
      return text.find("WARNING: MFU above 100 %") != std::string::npos;
    };
    EXPECT_EQ(warns(native_tables(view).at(0).caption), above);
    EXPECT_EQ(warns(mpt_tables(view).at(0).caption), above);
    std::string page = show_page("f", runs[0].record);
    for (size_t at = 0; (at = page.find('\n', at)) != std::string::npos;) {  // as one line
      const size_t end = page.find_first_not_of(' ', at + 1);
      page.replace(at, (end == std::string::npos ? page.size() : end) - at, " ");
    }
    EXPECT_EQ(warns(page), above) << page;
    const std::string rows = tables_json(native_tables(view));
    EXPECT_EQ(rows.find("\"notes\": [\"WARNING: MFU above 100 %") != std::string::npos, above)
        << rows;
    EXPECT_EQ(warns(record_json("f", runs[0].record)), above);
    const std::string comparison = compare_groups({{timed(1.0, 0.0404)}, runs}, 1.5);
    EXPECT_EQ(comparison.find("\nB: WARNING: MFU above 100 %") != std::string::npos, above)
        << comparison;
    EXPECT_EQ(comparison.find("\nA: WARNING"), std::string::npos);
    // The picture shows what cannot be passed.
    EXPECT_FALSE(utilisation_picture(view).panels.at(0).rules.empty());
  }
}

// 90 % by the deck's convention; by that of the mpt table, which counts the embedding, 110 %.
TEST(Trials, MfuIsJudgedByTheConventionThatATablePrints) {
  std::vector<LoadedRun> runs = {timed(1.0, 0.0404)};
  EXPECT_TRUE(mpt_tables(views(runs)).at(0).warnings.empty());
  runs[0].record.summary.flops.per_step["mpt"] = 0.0889e12;
  EXPECT_EQ(mpt_tables(views(runs)).at(0).warnings.size(), 1U);
  EXPECT_TRUE(native_tables(views(runs)).at(0).warnings.empty());
}

// tp=2 in 1.00 s against dp=2 in 1.05 s, with 20 % less MFU by a ceiling each. Of the three
// ceilings 0.044 and 0.045 agree.
TEST(Trials, SpeedMfuAndPicturesOrderRunsAlike) {
  std::vector<LoadedRun> runs = {timed(1.05, 0.044), timed(1.00, 0.0575), timed(1.10, 0.045)};
  set_key(runs[1].record, "parallel", "tensor_parallel", int64_t{2});
  set_key(runs[1].record, "parallel", "data_parallel", int64_t{1});
  set_key(runs[2].record, "parallel", "zero_stage", int64_t{3});
  EXPECT_LT(runs[1].record.summary.flops.mfu, 0.81 * runs[0].record.summary.flops.mfu);
  share_ceilings(runs);
  const Runs view = views(runs);
  const std::vector<size_t> slow_to_fast = {2, 0, 1};
  for (const char* heading : {"MFU (%)", "TFLOP/s total", "Tokens/s"}) {
    std::vector<double> figures;
    for (const std::string& cell : column(view, heading)) figures.push_back(std::stod(cell));
    ASSERT_EQ(figures.size(), 3u) << heading;
    EXPECT_EQ(order_of(figures), slow_to_fast) << heading;
  }
  EXPECT_EQ(order_of(bars(throughput_picture(view))), slow_to_fast);
  EXPECT_EQ(order_of(bars(utilisation_picture(view))), slow_to_fast);
}

// Four stages of one deck with one step time, also where rows name the batch as well: no two rows
// read alike, and each says its stage.
TEST(Trials, ASweepOverZeroIsUnambiguousInItsTable) {
  std::vector<LoadedRun> runs;
  for (const int64_t batch : {1, 2})
    for (int64_t stage = 0; stage < 4; ++stage) {
      runs.push_back(timed(1.0, 0.05));
      set_key(runs.back().record, "parallel", "zero_stage", stage);
      set_key(runs.back().record, "batch", "micro_batch_size", batch);
    }
  const Table table = native_tables(views(runs)).at(0);
  const std::set<std::vector<std::string>> rows(table.rows.begin(), table.rows.end());
  EXPECT_EQ(rows.size(), runs.size());
  const std::vector<std::string> layouts = column(views(runs), "Layout");
  const std::vector<std::string> batches = column(views(runs), "micro_batch_size");
  ASSERT_EQ(layouts.size(), runs.size());
  ASSERT_EQ(batches.size(), runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(layouts[i], "dp2 z" + std::to_string(i % 4));
    EXPECT_EQ(batches[i], i < 4 ? "1" : "2");
  }
  // And in the pictures: as many names as runs.
  for (const auto make : {throughput_picture, utilisation_picture, memory_picture}) {
    const Picture picture = make(views(runs), {});
    std::set<std::string> names;
    for (const auto& [row, name] : picture.panels.at(0).y.ticks) names.insert(name);
    EXPECT_EQ(names.size(), runs.size());
  }
}

}  // namespace
}  // namespace gptbench
