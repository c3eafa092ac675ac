#include "run/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gptbench {
namespace {

const Console console(true, Verbosity::normal);

StepResult step_of(double time_s) {
  StepResult result;
  result.loss = 9.75;
  result.grad_norm = 0.0125;
  result.time_s = time_s;
  return result;
}

// Steps of 2.5 s with 11,264 tokens and 5e12 FLOPs, as they end.
std::string lines_of(const Progress::Length& length, int64_t log_every, int64_t steps,
                     double step_s = 2.5) {
  Progress progress(console, length, log_every, 11264.0, 5e12);
  testing::internal::CaptureStdout();
  for (int64_t i = 0; i < steps; ++i)
    progress.add(i, step_of(step_s), step_s * static_cast<double>(i + 1));
  return testing::internal::GetCapturedStdout();
}

int64_t count_of_lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST(Progress, OneUnitPerColumnAndTimeLeft) {
  EXPECT_EQ(lines_of({3, 1, 0.0}, 0, 3),
            "    step      loss grad norm  time (s)   tokens/s   TFLOP/s  left (s)\n"
            "     1/3   9.75000    0.0125    2.5000     4505.6         2      5.00 warm-up\n"
            "     2/3   9.75000    0.0125    2.5000     4505.6         2      2.50\n"
            "     3/3   9.75000    0.0125    2.5000     4505.6         2         -\n");
}

// As wide as the last step: no line is shifted against another. Steps of a duration have no total.
TEST(Progress, ColumnsOfManyStepsStayBelowTheirHeading) {
  EXPECT_EQ(lines_of({100000, 1, 0.0}, 2, 2),
            "         step      loss grad norm  time (s)   tokens/s   TFLOP/s  left (s)\n"
            "     1/100000   9.75000    0.0125    2.5000     4505.6         2 249997.50 warm-up\n"
            "     2/100000   9.75000    0.0125    2.5000     4505.6         2 249995.00\n");
  EXPECT_EQ(lines_of({100000, 1, 100.0}, 2, 1).find("    step      loss"), 0u);
}

// Two steps of an earlier run went before; the warm-up is that of this one.
TEST(Progress, OfAResumedRunStepsCountOn) {
  Progress progress(console, {4, 1, 0.0, 2}, 1, 1.0, 1.0);
  testing::internal::CaptureStdout();
  progress.add(2, step_of(2.5), 2.5);
  progress.add(3, step_of(2.5), 5.0);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(count_of_lines(text), 1 + 2);
  EXPECT_NE(text.find("     3/4 "), std::string::npos) << text;
  EXPECT_NE(text.find("2.50 warm-up\n     4/4 "), std::string::npos) << text;
}

// 40 steps of 10 ms: the first, and each fourth.
TEST(Progress, LinesAreThinned) {
  EXPECT_EQ(count_of_lines(lines_of({40, 2, 0.0}, 0, 40, 0.01)), 1 + 1 + 10);
  EXPECT_EQ(count_of_lines(lines_of({40, 2, 0.0}, 20, 40, 0.01)), 1 + 1 + 2);
  EXPECT_EQ(count_of_lines(lines_of({40, 2, 0.0}, 1, 40, 0.01)), 1 + 40);
}

// What the report leaves room for: never fewer than there are, with a line about drift where steps
// take ten minutes; but for runs of many hours.
TEST(Progress, LinesAreBoundedBeforehand) {
  for (const int64_t steps : {1, 5, 9, 10, 11, 12, 19, 95, 100, 1000})
    for (const double step_s : {0.01, 0.61, 6.1, 61.0}) {
      const double run_s = step_s * static_cast<double>(steps);
      const bool tells_of_drift = run_s >= 600.0 && run_s < 8.0 * 3600.0;
      EXPECT_LE(count_of_lines(lines_of({steps, 2, 0.0}, 0, steps, step_s)) + tells_of_drift,
                1 + Progress::max_lines({steps, 2, 0.0}))
          << steps << " steps of " << step_s << " s";
    }
  EXPECT_EQ(Progress::max_lines({12, 2, 0.0}), 1 + 6);
  EXPECT_EQ(Progress::max_lines({1000, 2, 0.0}), 1 + 10);
  EXPECT_EQ(Progress::max_lines({3, 2, 0.0}), 1 + 3);
}

// 1,000 steps of 2.5 s, of which each hundredth is due: one after a minute (24 steps), one after
// two more (48), after four more, after eight more. These are the lines of the first 500 steps,
// one fewer than due, since a line about drift is to come; from the sixth hundred on each has its
// own.
TEST(Progress, LongRunsShowThatTheyLive) {
  const std::string text = lines_of({1000, 2, 0.0}, 0, 700);
  for (const char* const step :
       {"25/1000", "73/1000", "169/1000", "361/1000", "600/1000", "700/1000"})
    EXPECT_NE(text.find(step), std::string::npos) << step << " in\n" << text;
  EXPECT_EQ(count_of_lines(text), 1 + 1 + 6);
  // A day of steps of a minute, by steps and by time: lines behind 1, 3, 7, ..., 1023 minutes of
  // it.
  EXPECT_EQ(count_of_lines(lines_of({1440, 2, 0.0}, 0, 1440, 60.0)), 1 + 1 + 10 + 1);
  EXPECT_LE(count_of_lines(lines_of({10, 2, 86400.0}, 0, 1442, 60.0)), 1 + 2 + 10);
}

// Steps, skipped steps and held-out losses of 500 steps, the last 200 skipped, together.
TEST(Progress, LinesOfALongRunAreFew) {
  for (const double duration_s : {0.0, 5.0})
    for (const int64_t log_every : {0, 50}) {
      Progress progress(console, {500, 100, duration_s, 0, true}, log_every, 1.0, 1.0);
      testing::internal::CaptureStdout();
      for (int64_t i = 0; i < 500; ++i) {
        StepResult result = step_of(0.0125);
        result.skipped = log_every == 0 && i >= 300;
        const double now_s = 0.0125 * static_cast<double>(i + 1);
        progress.add(i, result, now_s);
        progress.evaluated(i + 1, 1.0, false, now_s);
      }
      const std::string text = testing::internal::GetCapturedStdout();
      // Heading and the skipped step.
      EXPECT_LE(count_of_lines(text),
                log_every > 0 ? 25 : 2 + Progress::max_lines({500, 100, duration_s, 0, true}))
          << text;
      EXPECT_GE(count_of_lines(text), 8) << text;
      EXPECT_NE(text.find("Held-out loss after step "), std::string::npos);
    }
}

// Stopped by time, or by a held-out loss: the last step and the last loss are printed, in this
// order. Of a run that was cut short "0.00" would read as if it had come to its end.
TEST(Progress, TheLastStepOfARunThatEndsEarlyIsPrinted) {
  for (const double duration_s : {0.0, 1000.0})
    for (const bool reaches_target : {false, true}) {
      Progress progress(console, {500, 1, duration_s, 0, true}, 0, 1.0, 1.0);
      testing::internal::CaptureStdout();
      for (int64_t i = 0; i < 15; ++i) {
        StepResult result = step_of(0.01);
        result.stop = !reaches_target && i == 14;
        progress.add(i, result, 0.01 * static_cast<double>(i + 1));
      }
      progress.evaluated(15, 1.0, reaches_target, 0.16);
      const std::string text = testing::internal::GetCapturedStdout();
      const std::string last = duration_s > 0.0 ? "\n      15 " : "\n  15/500 ";
      const size_t step = text.find(last), loss = text.find("\nHeld-out loss after step 15: ");
      EXPECT_NE(step, std::string::npos) << text;
      EXPECT_NE(loss, std::string::npos) << text;
      EXPECT_LT(step, loss);
      EXPECT_EQ(text.find(last, step + 1), std::string::npos) << text;
      EXPECT_EQ(text.substr(text.find('\n', step + 1) - 10, 10), "         -") << text;
    }
}

// 20 s after one step of warm-up: at 5 s the first timed step has ended, and 17.5 s are left.
TEST(Progress, OfADurationTheTimeLeftIsKnown) {
  const std::string text = lines_of({10, 1, 20.0}, 1, 2);
  EXPECT_NE(text.find("       2   9.75000    0.0125    2.5000     4505.6         2     17.50\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find('/', text.find('\n')), std::string::npos)
      << text;  // of how many is not known
}

// The job began 1 s before its first step, which took 2.5 s: 4.5 s of a limit of 8 s are left. The
// third step ends beyond it.
TEST(Progress, TheTimeLeftEndsAtTheLimit) {
  Config config;
  config.run.steps = 100;
  config.run.limits.time_limit_s = 8.0;
  const std::string text = lines_of(Progress::length_of(config, 0, -1.0), 1, 3);
  EXPECT_NE(text.find("     4.50 warm-up\n"), std::string::npos) << text;
  EXPECT_NE(text.find("         -\n"), std::string::npos) << text;
}

// A time limit ends both runs 100 s after their first step: they print a line each tenth of these
// 100 s, as a run of that length does.
TEST(Progress, LinesAreThinnedByTheTimeLimitThatEndsTheRun) {
  const double limit_at_s = 100.25;
  for (const Progress::Length& length : {Progress::Length{1000000, 1, 0.0, 0, false, limit_at_s},
                                         Progress::Length{10, 1, 86400.0, 0, false, limit_at_s}}) {
    const std::string text = lines_of(length, 0, 400, 0.25);
    EXPECT_GE(count_of_lines(text), 1 + 1 + 8) << text;
    EXPECT_LE(count_of_lines(text), 1 + Progress::max_lines(length)) << text;
  }
  // Steps that end before the limit are thinned as without one.
  EXPECT_EQ(lines_of({40, 1, 0.0, 0, false, 1000.0}, 0, 40), lines_of({40, 1, 0.0}, 0, 40));
  for (const int64_t steps : {1, 9, 12, 19, 39, 41, 95})
    for (const bool evaluates : {false, true})
      EXPECT_LE(count_of_lines(lines_of({steps, 1, 0.0, 0, evaluates, limit_at_s}, 0,
                                        std::min<int64_t>(steps, 40))),
                1 + Progress::max_lines({steps, 1, 0.0, 0, evaluates}))
          << steps << " steps";
}

// One has a line of its own; the others are told of in the next line.
TEST(Progress, FurtherSkippedStepsAreCounted) {
  Progress progress(console, {100, 1, 0.0}, 0, 1.0, 1.0);
  StepResult skipped = step_of(0.01);
  skipped.skipped = true;
  testing::internal::CaptureStdout();
  for (int64_t i = 0; i < 10; ++i) progress.add(i, i < 8 ? skipped : step_of(0.01), 0.01);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(count_of_lines(text), 1 + 2 + 1) << text;
  EXPECT_NE(text.find(" 7 skipped\n"), std::string::npos) << text;
}

TEST(Progress, WithLogEverySkippedStepsAlwaysHaveALine) {
  Progress progress(console, {100, 1, 0.0}, 100, 1.0, 1.0);
  StepResult skipped = step_of(0.01);
  skipped.skipped = true;
  skipped.loss_scale = 65536.0;
  skipped.next_loss_scale = 32768.0;
  testing::internal::CaptureStdout();
  progress.add(0, step_of(0.01), 0.01);
  progress.add(1, step_of(0.01), 0.02);
  progress.add(2, skipped, 0.03);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(count_of_lines(text), 1 + 1 + 1);
  EXPECT_NE(text.find("\nStep 3 skipped: gradient not finite; loss scale 65536, next 32768\n"),
            std::string::npos)
      << text;
}

TEST(Progress, QuietRunsPrintNothing) {
  const Console quiet(true, Verbosity::quiet);
  Progress progress(quiet, {2, 1, 0.0}, 1, 1.0, 1.0);
  testing::internal::CaptureStdout();
  progress.add(0, step_of(1.0), 1.0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace gptbench
