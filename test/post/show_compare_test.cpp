#include <gtest/gtest.h>

#include <sstream>

#include "made_record.h"
#include "post/commands.h"
#include "post/regions.h"

namespace gptbench {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Show, PageOf80ColumnsWithEverything) {
  const std::string page = show_page("out/result.h5", made_record());
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const char* part :
       {"OK, VALID", "124,475,904 parameters", "data 2, tensor 1", "32.000 s (median of 3",
        "MFU 48.90 %", "activations   858.3 MiB", "slowest rank, 1", "all_reduce", "FAILED",
        "dropout, cross_entropy", "(measured GEMM\n                        ceiling)"})
    EXPECT_TRUE(has(page, part)) << part << "\n" << page;
}

TEST(Show, ARunWithoutASingleStep) {
  Record r;
  r.status = "OOM";
  r.reason = "node n1: parameters need 40.0 GiB, 12.0 GiB are left; a smaller model or more ranks";
  const std::string page = show_page("x.h5", r);
  EXPECT_TRUE(has(page, "no step was timed"));
  EXPECT_TRUE(has(page, "OOM"));
}

TEST(Regions, TheSlowestRankByMediansOfTimedSteps) {
  const Record r = made_record();  // warm-up 1; forward of rank 1: 2 | 4 6 8
  const Breakdown slowest = slowest_rank(r);
  EXPECT_EQ(slowest.rank, 1);
  ASSERT_EQ(slowest.regions.size(), 2u);
  EXPECT_EQ(slowest.regions[0].time_s, 6.0);
  EXPECT_EQ(median_of({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(slowest_rank(Record{}).regions.size(), 0u);
}

TEST(Regions, OfReducedSeriesTheMaximum) {
  Record r;
  r.timing = {{"forward", "s", "", {1, 2, 3, 40}, 1, 4, true}};
  const Breakdown slowest = slowest_rank(r);
  EXPECT_EQ(slowest.rank, -1);
  EXPECT_EQ(slowest.regions.at(0).time_s, 3.0);
}

TEST(Compare, WithinAndBeyondNoise) {
  const Record a = made_record();
  Record b = made_record();
  b.step_time_s = {40.0, 32.0, 32.5, 33.0};  // overlaps 31.5 .. 33
  b.summary.sec_per_it = 32.5;
  EXPECT_TRUE(has(compare_page("a", a, "b", b), "a step is within noise"));
  b.step_time_s = {40.0, 16.0, 16.0, 17.0};
  b.summary.sec_per_it = 16.0;
  b.loss[3] += 0.5;
  set_key(b, "parallel", "zero_stage", int64_t{1});
  const std::string page = compare_page("a", a, "b", b);
  EXPECT_TRUE(has(page, "a step is beyond noise")) << page;
  // 16 .. 17 over 31.5 .. 33, three steps each: the least and the largest.
  EXPECT_TRUE(has(page, "0.500  0.485 to 0.540  beyond")) << page;
  EXPECT_TRUE(has(page, "largest difference over 4 common steps 0.5"));
  EXPECT_TRUE(has(page, "parallel.zero_stage  0  1"));
  b.step_time_s = {40.0, 16.0};
  EXPECT_TRUE(has(compare_page("a", a, "b", b), "not known"));
}

}  // namespace
}  // namespace gptbench
