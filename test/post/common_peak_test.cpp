#include "post/common_peak.h"

#include <gtest/gtest.h>

#include "has.h"
#include "made_record.h"
#include "post/commands.h"
#include "post/style.h"

namespace gptbench {
namespace {

// A run of 60 TFLOP/s per device whose GEMM ceiling was `ceiling`; 0: it varied, and gave no MFU.
LoadedRun run_with(double ceiling, const std::string& machine = "made machine") {
  LoadedRun run;
  run.record = made_record();
  run.record.machine = machine;
  Summary& s = run.record.summary;
  s.flops.model_tflops_per_device = s.flops.hardware_tflops_per_device = 60.0;
  s.peak.source = "measured GEMM ceiling";
  s.peak.tflops = ceiling > 0.0 ? ceiling : 30.0;
  s.flops.mfu = s.flops.hfu = ceiling > 0.0 ? 60.0 / ceiling : 0.0;
  return run;
}

// The median of 98, 100 and 101; the one that varied has no part in it, but gets it.
TEST(CommonPeak, IsTheMedianOfSteadyCeilings) {
  std::vector<LoadedRun> runs = {run_with(98), run_with(0), run_with(101), run_with(100)};
  share_ceilings(runs);
  for (const LoadedRun& run : runs) {
    EXPECT_EQ(run.record.summary.peak.tflops, 100.0);
    EXPECT_DOUBLE_EQ(run.record.summary.flops.mfu, 0.6);
    EXPECT_EQ(run.record.summary.peak.source,
              "median of the measured GEMM ceilings, 3 of 4 runs within 2.0 %");
  }
  std::vector<LoadedRun> single = {run_with(80)};
  share_ceilings(single);
  EXPECT_EQ(single[0].record.summary.peak.source, "measured GEMM ceiling");
}

// The ceilings 120 and 104.1 lie more than 3 % from 101, the median of five runs. They do not
// count, but their runs get the common peak, too.
TEST(CommonPeak, OutliersDoNotCount) {
  std::vector<LoadedRun> runs = {run_with(101), run_with(120), run_with(100), run_with(99),
                                 run_with(104.1)};
  share_ceilings(runs);
  for (const LoadedRun& run : runs) {
    EXPECT_EQ(run.record.summary.peak.tflops, 101.0);
    EXPECT_DOUBLE_EQ(run.record.summary.flops.mfu, 60.0 / 101.0);
    EXPECT_EQ(run.record.summary.peak.source,
              "median of the measured GEMM ceilings, 3 of 5 runs within 2.0 %");
  }
}

// Two ceilings that are 8 % apart; four of which two count; three of five that are too far off. One
// that varied has no peak either.
TEST(CommonPeak, NoneWhereNotMoreThanHalfAgree) {
  for (const auto& [ceilings, reason] :
       {std::pair{std::vector<double>{96, 104, 0}, "2 measured GEMM ceilings are 4.0 %"},
        {{99, 101, 90, 110}, "4 measured GEMM ceilings are 10.0 %"},
        {{100, 101, 90, 106.1, 95}, "5 measured GEMM ceilings are 5.0 %"}}) {
    std::vector<LoadedRun> runs;
    for (const double each : ceilings) runs.push_back(run_with(each));
    share_ceilings(runs);
    Runs views;
    for (const LoadedRun& run : runs) {
      EXPECT_EQ(run.record.summary.peak.tflops, 0.0);
      EXPECT_EQ(run.record.summary.flops.mfu, 0.0);
      EXPECT_EQ(run.record.summary.flops.hfu, 0.0);
      views.emplace_back(run.record);
    }
    EXPECT_EQ(peaks_of(views), "");
    EXPECT_EQ(reasons_without_mfu(views),
              std::vector<std::string>{
                  std::string("no MFU: at least half of the ") + reason +
                  " or more from their median (allowed: 3 %); repeat the runs on a quiet machine, "
                  "or set output.peak_tflops"});
    const std::string caption = native_tables(views).at(0).caption;
    EXPECT_TRUE(has(caption, "; no MFU: at least half of the ")) << caption;
  }
}

// One rank per node whose GEMMs run on 8, 16 and 32 threads: a median would put the last above its
// ceiling. Which processors a rank has does not matter.
TEST(CommonPeak, IsOfOneNumberOfThreads) {
  std::vector<LoadedRun> runs = {run_with(84), run_with(150), run_with(260), run_with(86)};
  const char* const threads[] = {"8 threads", "16 threads", "32 threads", "8 threads"};
  for (size_t r = 0; r < runs.size(); ++r)
    runs[r].record.provenance.chosen_algorithms =
        std::string("device=host, Kokkos OpenMP, ") + threads[r] +
        ", oneDNN 2.6.3 (avx2)\ncores_of_rank_0=" + std::to_string(r) + "\n";
  share_ceilings(runs);
  const double peaks[] = {85.0, 150.0, 260.0, 85.0};
  for (size_t r = 0; r < runs.size(); ++r)
    EXPECT_EQ(runs[r].record.summary.peak.tflops, peaks[r]) << r;
}

// Runs on one and two ranks per node whose ceilings are 2 % apart have the median of all; where
// they are 4 % apart all have the larger one. Four ranks, whose ceiling varied, have it as well.
TEST(CommonPeak, IsOneForAllRanksPerNode) {
  std::vector<LoadedRun> runs = {run_with(100), run_with(102), run_with(0), run_with(0)};
  for (size_t r = 0; r < runs.size(); ++r)
    runs[r].record.summary.ranks_per_node = r < 3 ? 1 + static_cast<int64_t>(r % 2) : 4;
  std::vector<LoadedRun> far = runs;
  far[1].record.summary.peak.tflops = 104.0;
  share_ceilings(runs);
  share_ceilings(far);
  for (const LoadedRun& run : runs) EXPECT_EQ(run.record.summary.peak.tflops, 101.0);
  for (const LoadedRun& run : far) {
    EXPECT_EQ(run.record.summary.peak.tflops, 104.0);
    EXPECT_DOUBLE_EQ(run.record.summary.flops.mfu, 60.0 / 104.0);
  }
  EXPECT_EQ(peaks_of({RunView(runs[0].record), RunView(runs[1].record), RunView(runs[2].record)}),
            "peak 101 TFLOP/s (median of the measured GEMM ceilings, 2 of 4 runs within 1.0 %)");
  EXPECT_EQ(peaks_of({RunView(far[0].record), RunView(far[1].record)}),
            "peak 104 TFLOP/s (median of the measured GEMM ceilings with 2 ranks per node, 1 of 4 "
            "runs)");
  EXPECT_TRUE(has(compare_groups({{runs[0]}, {runs[1]}}, 1.5), "\nMFU (%)"));
  EXPECT_TRUE(has(compare_groups({{far[0]}, {far[1]}}, 1.5), "\nMFU (%)"));
}

// Another hidden size has GEMMs of other sizes, and so another ceiling; more layers have the same.
TEST(CommonPeak, IsOfOneModel) {
  std::vector<LoadedRun> runs = {run_with(91), run_with(89), run_with(60), run_with(0)};
  set_key(runs[1].record, "model", "num_layers", int64_t{24});
  for (const size_t r : {2, 3}) set_key(runs[r].record, "model", "hidden_size", int64_t{1024});
  share_ceilings(runs);
  const double peaks[] = {90.0, 90.0, 60.0, 60.0};
  for (size_t r = 0; r < runs.size(); ++r)
    EXPECT_EQ(runs[r].record.summary.peak.tflops, peaks[r]) << r;
}

// Two runs without a steady ceiling, whatever each varied by; one whose device is not known; one
// that says its peak.
TEST(CommonPeak, TablesNameThePeaksAndWhyThereIsNoMfu) {
  std::vector<LoadedRun> runs = {run_with(0), run_with(0), run_with(0), run_with(100)};
  runs[0].record.summary.gemm_ceiling.spread = 0.08;
  runs[1].record.summary.gemm_ceiling.spread = 0.14;
  runs[2].record.summary.peak = {};
  runs[2].record.summary.flops.mfu = 0.0;
  runs[3].record.summary.peak.source = "deck";
  share_ceilings(runs);
  Runs views;
  for (const LoadedRun& run : runs) views.emplace_back(run.record);
  EXPECT_EQ(peaks_of(views), "peak 100 TFLOP/s (deck)");
  EXPECT_EQ(reasons_without_mfu(views),
            (std::vector<std::string>{
                "no MFU of 2 runs: the measured GEMM ceiling varied by more than 3 %; repeat the "
                "run on a quiet machine, or set output.peak_tflops",
                "no MFU of 1 run: no peak is known"}));
  for (const Style& style : styles) {
    const Table table = style.tables(views).at(0);
    const bool has_mfu = std::string(style.name) == "native" || std::string(style.name) == "mpt";
    EXPECT_EQ(
        table.caption.find("; peak 100 TFLOP/s (deck); no MFU of 2 runs: ") != std::string::npos,
        has_mfu)
        << table.caption;
    EXPECT_EQ(table.warnings.size(), has_mfu ? 2u : 0u) << style.name;
  }
  EXPECT_EQ(peaks_of({RunView(runs[3].record, {"", 50.0, ""})}), "peak 50 TFLOP/s (--peak)");
}

TEST(CommonPeak, IsOfOneMachineDeviceAndType) {
  std::vector<LoadedRun> runs = {run_with(100), run_with(80, "another"), run_with(60),
                                 run_with(40)};
  set_key(runs[2].record, "precision", "compute", std::string("another type"));
  runs[3].record.summary.device.name = "a device of the same machine";
  share_ceilings(runs);
  for (size_t i = 0; i < runs.size(); ++i)
    EXPECT_EQ(runs[i].record.summary.peak.tflops, 100.0 - 20.0 * static_cast<double>(i));
}

TEST(CommonPeak, NoneWhereAllVariedAndKnownPeaksStay) {
  std::vector<LoadedRun> runs = {run_with(0), run_with(0), run_with(100)};
  runs[2].record.summary.peak.source = "deck";
  share_ceilings(runs);
  EXPECT_EQ(runs[0].record.summary.peak.tflops, 0.0);
  EXPECT_EQ(runs[1].record.summary.flops.mfu, 0.0);
  EXPECT_EQ(runs[2].record.summary.peak.tflops, 100.0);
}

// Both peaks of a device that is not known leave the figure of the run.
TEST(CommonPeak, BothOfADeviceThatIsNotKnown) {
  Record r = made_record();
  set_key(r, "precision", "compute", std::string("fp8"));
  const RunView run(r, {"", 0.0, "both"});
  const auto values = run.rates().utilisations("causal", false);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].first, "");
  EXPECT_EQ(values[0].second, run.rates().utilisation_percent("causal", false));
}

// A data sheet has the peak of a socket, which 24 ranks share here; the recorded peak says so.
TEST(CommonPeak, APeakOfAHostIsThatOfARanksShare) {
  Record r = made_record();
  set_key(r, "run", "device", std::string("host"));
  set_key(r, "precision", "compute", std::string("fp16"));
  r.summary.device.name = "h100_80gb";  // no processor has a peak in bf16 by its data sheet
  r.summary.peak.source = "known device";
  r.summary.peak.tflops = 989.5 / 24.0;
  const auto peak = [&] { return RunView(r, {"", 0.0, "bf16"}).rates().peak_tflops(); };
  EXPECT_DOUBLE_EQ(peak(), 989.5 / 24.0);
  r.summary.peak.source = "deck";  // of any meaning
  EXPECT_EQ(peak(), 0.0);
  set_key(r, "run", "device", std::string("cuda"));
  EXPECT_DOUBLE_EQ(peak(), 989.5);
}

}  // namespace
}  // namespace gptbench
