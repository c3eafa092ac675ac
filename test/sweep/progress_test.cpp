// What the driver of a sweep concludes from the ends of its jobs, with figures by hand.
#include "sweep/progress.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

// Rows of 100, 300, 50 and 200 FLOPs; the second is ended after 4 s.
TimeLeft four_rows() {
  TimeLeft left;
  left.add_row(100.0, 0.0);
  left.add_row(300.0, 4.0);
  left.add_row(50.0, 0.0);
  left.add_row(200.0, 1000.0);
  return left;
}

TEST(TimeLeft, RowsToDoAtTheSpeedOfValidRows) {
  TimeLeft left = four_rows();
  EXPECT_EQ(left.seconds(), 0.0);  // no speed yet
  left.finish(0, "OK", 2.0);       // 50 FLOP/s
  EXPECT_EQ(left.seconds(), 4.0 + 1.0 + 4.0);
  left.finish(2, "OK", 1.0);  // 150 FLOPs in 3 s
  EXPECT_EQ(left.seconds(), 4.0 + 4.0);
  left.finish(3, "OK", 4.0);  // 350 FLOPs in 7 s
  EXPECT_EQ(left.seconds(), 4.0);
  left.finish(1, "OK", 3.0);
  EXPECT_EQ(left.seconds(), 0.0);
}

TEST(TimeLeft, OtherOutcomesTellNoSpeed) {
  for (const char* status : {"OOM", "INVALID", "FAILED", "TIMEOUT"}) {
    TimeLeft left = four_rows();
    left.finish(0, status, 1000.0);
    EXPECT_EQ(left.seconds(), 0.0) << status;
    left.finish(2, "OK", 1.0);  // 50 FLOP/s
    EXPECT_EQ(left.seconds(), 4.0 + 4.0) << status;
  }
}

TEST(TimeLeft, ResultsOfAnEarlierSweepTellNoSpeed) {
  TimeLeft left = four_rows();
  left.finish(0, "OK", 0.0);
  EXPECT_EQ(left.seconds(), 0.0);
  left.finish(3, "OK", 2.0);  // 100 FLOP/s
  EXPECT_EQ(left.seconds(), 3.0 + 0.5);
}

TEST(ResultUse, OnlyAFileOfThisJobCounts) {
  using Cause = ProcessEnd::Cause;
  const FileIdentity none, first{7, 1000}, second{8, 1000}, rewritten{7, 1001};
  for (const Cause cause : {Cause::ended, Cause::time_limit}) {
    EXPECT_EQ(result_use(none, none, cause), ResultUse::missing);
    EXPECT_EQ(result_use(first, first, cause), ResultUse::missing);  // an earlier job's
    EXPECT_EQ(result_use(first, none, cause), ResultUse::missing);
    EXPECT_EQ(result_use(none, first, cause), ResultUse::taken);
    EXPECT_EQ(result_use(first, second, cause), ResultUse::taken);
    EXPECT_EQ(result_use(first, rewritten, cause), ResultUse::taken);
  }
  EXPECT_EQ(result_use(none, first, Cause::interrupted), ResultUse::set_aside);
  EXPECT_EQ(result_use(first, first, Cause::interrupted), ResultUse::missing);
}

}  // namespace
}  // namespace gptbench
