#include "post/common_peak.h"

#include <gtest/gtest.h>

#include "made_record.h"
#include "post/run_view.h"

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

// The median of 80, 100 and 120; the one that varied has no part in it, but gets it.
TEST(CommonPeak, IsTheMedianOfSteadyCeilings) {
  std::vector<LoadedRun> runs = {run_with(80), run_with(0), run_with(120), run_with(100)};
  share_ceilings(runs);
  for (const LoadedRun& run : runs) {
    EXPECT_EQ(run.record.summary.peak.tflops, 100.0);
    EXPECT_DOUBLE_EQ(run.record.summary.flops.mfu, 0.6);
  }
}

TEST(CommonPeak, IsOfOneMachineTypeAndNumberOfRanks) {
  std::vector<LoadedRun> runs = {run_with(100), run_with(80, "another"), run_with(60),
                                 run_with(40)};
  set_key(runs[2].record, "precision", "compute", std::string("another type"));
  runs[3].record.summary.ranks_per_node += 1;
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
  EXPECT_EQ(values[0].second, run.rates().utilisation("causal", false));
}

}  // namespace
}  // namespace gptbench
