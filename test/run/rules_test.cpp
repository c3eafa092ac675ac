// The rules of a problem class: a run that keeps them, and each that can be broken.
#include "run/rules.h"

#include <gtest/gtest.h>

#include <limits>

#include "deck/deck.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

// A deck of class demo: at least 2 s and 10 steps; the loss may rise by 5 %.
Config demo(const std::string& keys = "") {
  return resolve(parse_deck("a.in", "&run class='demo'" + keys + " /", {}), 2);
}

// Two ranks; 2 steps of warm-up, then 10 of a quarter of a second.
Record valid_run() {
  Record r;
  r.outcome.verdict = "VALID";
  r.outcome.status = "OK";
  r.git_commit = "0123456789ab";
  r.steps.warmup_steps = 2;
  r.steps.time_s.assign(12, 0.25);
  r.steps.loss.assign(12, 6.0);
  r.summary.world_size = 2;
  r.summary.peak.tflops = 0.1;
  r.config = {{"run", "class", std::string("demo"), "1", ""},
              {"run", "tier", std::string("as_is"), "1", ""}};
  return r;
}

std::string broken(const Record& record, const Config& config = demo()) {
  const RulesOutcome found = rules_of(record, config);
  EXPECT_EQ(found.outcome, found.broken.empty() ? "met" : "not met");
  return found.broken;
}

TEST(Rules, OfAValidRunHold) {
  EXPECT_EQ(broken(valid_run()), "");
  Record r = valid_run();
  r.summary.rules = rules_of(r, demo());
  EXPECT_EQ(rules_text(r), "met: class demo, as_is");
}

TEST(Rules, OfNoClassAreNone) {
  const Record r = valid_run();
  EXPECT_EQ(rules_of(r, resolve(parse_deck("a.in", "&run name='x' /", {}), 2)).outcome, "");
  EXPECT_EQ(rules_text(r), "");
}

TEST(Rules, EachThatIsBrokenIsNamed) {
  Record r = valid_run();
  r.outcome.verdict = "INVALID";
  EXPECT_EQ(broken(r), "the verdict is INVALID");

  r = valid_run();
  r.steps.time_s.assign(12, 0.125);  // the warm-up does not count
  EXPECT_EQ(broken(r), "1.25 s are timed, at least 2 s are required: raise run.duration_s");

  r = valid_run();
  r.steps.time_s.assign(6, 0.5);
  r.steps.loss.assign(6, 6.0);
  EXPECT_EQ(broken(r), "4 steps are timed, at least 10 are required: raise run.duration_s");

  r = valid_run();
  r.summary.skipped_steps = 1;
  EXPECT_EQ(broken(r), "1 steps were skipped, none may be");

  r = valid_run();
  r.steps.loss.back() = 6.29;
  EXPECT_EQ(broken(r), "");
  r.steps.loss.back() = 6.31;
  EXPECT_EQ(broken(r), "the loss went from 6.0000 to 6.3100, it may rise by at most 5 %");
  r.steps.loss.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(broken(r).find("it may rise"), std::string::npos);

  r = valid_run();
  r.summary.peak.tflops = 0.0;
  EXPECT_EQ(broken(r), "no peak is known: set output.peak_tflops");

  r = valid_run();
  Config config = demo();
  config.model.num_layers = 3;
  EXPECT_EQ(broken(r, config), "model.num_layers = 3 (the class has 2)");
  r.outcome.verdict = "NOT VERIFIED";
  EXPECT_EQ(broken(r, config),
            "model.num_layers = 3 (the class has 2); the verdict is NOT VERIFIED");
}

// A longer duration helps neither a run that was cut short nor one that failed at once.
TEST(Rules, OfARunThatEndedEarlyGiveNoAdviceOnItsLength) {
  for (const char* verdict : {"NOT VERIFIED", "INVALID"})
    for (const size_t steps : {0, 2}) {  // none timed
      Record r = valid_run();
      r.outcome.verdict = verdict;
      r.steps.time_s.assign(steps, 0.5);
      r.steps.loss.assign(steps, 6.0);
      r.summary.peak.tflops = 0.0;
      EXPECT_EQ(broken(r), std::string("the verdict is ") + verdict) << steps;
    }
  Record r = valid_run();
  r.outcome.verdict = "NOT VERIFIED";
  r.steps.time_s.assign(4, 0.5);
  EXPECT_EQ(broken(r),
            "the verdict is NOT VERIFIED; 1 s are timed, at least 2 s are required; 2 steps are "
            "timed, at least 10 are required");
  r = valid_run();  // every step was skipped
  r.steps.time_s.clear();
  r.summary.skipped_steps = 12;
  EXPECT_EQ(broken(r),
            "0 s are timed, at least 2 s are required: raise run.duration_s; 0 steps are timed, at "
            "least 10 are required: raise run.duration_s; 12 steps were skipped, none may be");
}

// The program as it is distributed; `tuned` may be another.
TEST(Rules, AsIsIsTheProgramOfACommit) {
  for (const char* commit : {"0123456789ab+", "unknown", ""}) {
    Record r = valid_run();
    r.git_commit = commit;
    EXPECT_NE(broken(r).find("the program is not that of a commit"), std::string::npos) << commit;
    EXPECT_EQ(broken(r, demo(", tier='tuned'")), "");
  }
}

}  // namespace
}  // namespace gptbench
