#include "measure/job_limit.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>

namespace gptbench {
namespace {

double with_end(const std::string& text) {
  setenv("SLURM_JOB_END_TIME", text.c_str(), 1);
  const double left_s = seconds_until_job_end();
  unsetenv("SLURM_JOB_END_TIME");
  return left_s;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// A tenth is kept back, at most 60 s. The clock goes on from `before` to `after`; doubles of
// seconds since 1970 resolve 0.24 us.
TEST(JobLimit, KeepsATenthBackAtMostAMinute) {
  constexpr double resolution_s = 1e-6;
  struct Case {
    long limit_s;
    double factor, kept_s;
  };
  for (const Case& c :
       {Case{100, 0.9, 0.0}, Case{500, 0.9, 0.0}, Case{700, 1.0, 60.0}, Case{36000, 1.0, 60.0}}) {
    const double before = seconds_now();
    const long end = static_cast<long>(before) + c.limit_s;
    const double left_s = with_end(std::to_string(end));
    const double after = seconds_now();
    const auto expected = [&](double now) {
      return c.factor * (static_cast<double>(end) - now) - c.kept_s;
    };
    EXPECT_LE(left_s, expected(before) + resolution_s) << c.limit_s;
    EXPECT_GE(left_s, expected(after) - resolution_s) << c.limit_s;
  }
}

TEST(JobLimit, NoneWhereNoneIsOfferedOrItMakesNoSense) {
  unsetenv("SLURM_JOB_END_TIME");
  EXPECT_TRUE(std::isinf(seconds_until_job_end()));
  for (const char* text : {"", "tomorrow", "12x", "0", "-5", "nan"})
    EXPECT_TRUE(std::isinf(with_end(text))) << text;
}

}  // namespace
}  // namespace gptbench
