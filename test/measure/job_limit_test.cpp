#include "measure/job_limit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string>

namespace gptbench {
namespace {

double with_end(const std::string& text) {
  setenv("SLURM_JOB_END_TIME", text.c_str(), 1);
  const double left_s = seconds_until_job_end();
  unsetenv("SLURM_JOB_END_TIME");
  return left_s;
}

// The clock may tick between the two readings: the test allows for a minute of it.
TEST(JobLimit, KeepsATenthBackAtMostAMinute) {
  const long now = static_cast<long>(std::time(nullptr));
  const double short_s = with_end(std::to_string(now + 100));
  EXPECT_LE(short_s, 0.9 * 101);
  EXPECT_GT(short_s, 0.9 * 40);
  const double long_s = with_end(std::to_string(now + 36000));
  EXPECT_LE(long_s, 36001 - 60);
  EXPECT_GT(long_s, 36000 - 60 - 60);
}

TEST(JobLimit, NoneWhereNoneIsOfferedOrItMakesNoSense) {
  unsetenv("SLURM_JOB_END_TIME");
  EXPECT_TRUE(std::isinf(seconds_until_job_end()));
  for (const char* text : {"", "tomorrow", "12x", "0", "-5", "nan"})
    EXPECT_TRUE(std::isinf(with_end(text))) << text;
}

}  // namespace
}  // namespace gptbench
