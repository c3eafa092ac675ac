// Specifications of `gptpost accept` and every verdict about them.
#include "post/accept.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/error.h"
#include "made_record.h"
#include "post/field.h"

namespace gptbench {
namespace {

// A valid run named `made` on 2 ranks of a node.
LoadedRun run_at(double tokens_per_s, const std::string& path = "a.h5") {
  LoadedRun run{path, made_record(), std::nullopt};
  run.record.verify[1].passed = true;
  run.record.summary.rate.tokens_per_s = tokens_per_s;
  run.record.summary.rules.outcome = "met";
  return run;
}

std::vector<LoadedRun> runs_at(const std::vector<double>& rates) {
  std::vector<LoadedRun> runs;
  for (const double rate : rates) runs.push_back(run_at(rate, std::to_string(runs.size()) + ".h5"));
  return runs;
}

AcceptResult judged(const std::string& keys, const std::vector<LoadedRun>& runs) {
  return judge(parse_spec("s.in", "&speed " + keys + " /"), runs).at(0);
}

// Verdict and reason.
std::string outcome(const std::string& keys, const std::vector<LoadedRun>& runs) {
  const AcceptResult result = judged(keys, runs);
  return name_of(result.verdict) + " " + result.reason;
}

const std::string at_100 = "figure='tokens_per_s', reference=100";

TEST(Accept, OneSidedInTheHarmfulDirection) {
  EXPECT_EQ(outcome(at_100, {run_at(95.1)}),
            "PASSED tokens_per_s 95.1, reference 100 (-4.9 %, 5 % allowed), 1 run");
  EXPECT_EQ(outcome(at_100, {run_at(94.9)}),
            "FAILED tokens_per_s 94.9, reference 100 (-5.1 %, 5 % allowed), 1 run");
  EXPECT_EQ(judged(at_100, {run_at(300)}).verdict, Accepted::PASSED);
  EXPECT_EQ(judged(at_100 + ", worse='both'", {run_at(106)}).verdict, Accepted::FAILED);
  EXPECT_EQ(judged(at_100 + ", tolerance=0", {run_at(100)}).verdict, Accepted::PASSED);
  EXPECT_EQ(judged(at_100 + ", tolerance=0", {run_at(99.99)}).verdict, Accepted::FAILED);
  // More time or memory is worse: made_record takes 32 s per step.
  const std::string time = "figure='sec_per_it', tolerance=5, reference=";
  EXPECT_EQ(judged(time + "30.6", {run_at(1)}).verdict, Accepted::PASSED);
  EXPECT_EQ(judged(time + "30.4", {run_at(1)}).verdict, Accepted::FAILED);
  EXPECT_EQ(judged(time + "64", {run_at(1)}).verdict, Accepted::PASSED);
  EXPECT_EQ(judged(time + "64, worse='less'", {run_at(1)}).verdict, Accepted::FAILED);
}

TEST(Accept, MedianRepeatsAndSpread) {
  const std::string three = at_100 + ", repeats=3";
  EXPECT_EQ(outcome(three, runs_at({90, 99, 103})),
            "PASSED tokens_per_s 99, reference 100 (-1.0 %, 5 % allowed), 3 runs, spread 13.1 %");
  EXPECT_EQ(outcome(three, runs_at({99, 103})),
            "NOT_DECIDED tokens_per_s 101, reference 100 (+1.0 %, 5 % allowed), 2 runs, spread "
            "4.0 %; 3 runs are required");
  EXPECT_EQ(outcome(three + ", spread=4", runs_at({90, 99, 103})),
            "NOT_DECIDED tokens_per_s 99, reference 100 (-1.0 %, 5 % allowed), 3 runs, spread "
            "13.1 %; a spread of at most 4 % is required");
  EXPECT_EQ(judged(three + ", spread=4", runs_at({98, 99, 101})).verdict, Accepted::PASSED);
  // A median below with a run above is open where the spread is too large; none above is not.
  EXPECT_EQ(judged(three + ", spread=4", runs_at({80, 90, 99})).verdict, Accepted::NOT_DECIDED);
  EXPECT_EQ(judged(three + ", spread=4", runs_at({80, 85, 94})).verdict, Accepted::FAILED);
  EXPECT_EQ(judged(three, {run_at(80)}).verdict, Accepted::FAILED);
}

TEST(Accept, VerdictRulesAndChecksOfEachRun) {
  LoadedRun run = run_at(100, "b.h5");
  run.record.outcome.verdict = "INVALID";
  run.record.outcome.status = "INVALID";
  run.record.outcome.reason = "check failed";
  EXPECT_EQ(outcome(at_100, {run_at(100), run}), "FAILED b.h5 is INVALID (INVALID: check failed)");
  EXPECT_EQ(judged(at_100 + ", verdict='any'", {run}).verdict, Accepted::PASSED);
  run.record.outcome.verdict = "NOT VERIFIED";
  run.record.outcome.status = "TIMEOUT";
  run.record.outcome.reason = "";
  EXPECT_EQ(outcome(at_100, {run, run_at(1)}), "NOT_DECIDED b.h5 is NOT VERIFIED (TIMEOUT)");
  // Whatever the run that was cut short would have been, no other is good enough.
  run.record.summary.rate.tokens_per_s = 50;
  EXPECT_EQ(judged(at_100, {run, run_at(50)}).verdict, Accepted::FAILED);
  EXPECT_NE(judged(at_100, {run, run_at(50)}).reason.find("; b.h5 is NOT VERIFIED"),
            std::string::npos);

  run = run_at(100, "b.h5");
  EXPECT_EQ(judged(at_100 + ", rules='met'", {run}).verdict, Accepted::PASSED);
  run.record.summary.rules.outcome = "not met";
  run.record.summary.rules.broken = "too short";
  EXPECT_EQ(outcome(at_100 + ", rules='met'", {run}),
            "FAILED b.h5 does not meet its rules: too short");
  EXPECT_EQ(judged(at_100, {run}).verdict, Accepted::PASSED);
  run.record.summary.rules.outcome = "";
  EXPECT_EQ(outcome("rules='met'", {run}), "FAILED b.h5 names no problem class");

  const std::string checks = "checks='loss_against_reference', 'replicas_identical'";
  EXPECT_EQ(outcome(checks, {run}), "PASSED 1 run");
  EXPECT_EQ(outcome(checks + ", repeats=2", {run}), "NOT_DECIDED 1 run; 2 are required");
  run.record.verify[1].passed = false;
  EXPECT_EQ(outcome(checks, {run}), "FAILED b.h5 failed the check replicas_identical");
  run.record.verify.pop_back();
  EXPECT_EQ(outcome(checks, {run}), "NOT_DECIDED b.h5 was not checked for replicas_identical");
  // What fails goes before what is open, whatever the order of the runs.
  LoadedRun failed = run_at(100, "c.h5");
  failed.record.verify[0].passed = false;
  EXPECT_EQ(judged(checks, {run, failed}).verdict, Accepted::FAILED);
}

TEST(Accept, FlopsOfOneConvention) {
  const std::string row = "figure='model_tflops_per_device', reference=1e-9, tolerance=5";
  LoadedRun other = run_at(100, "b.h5");
  EXPECT_EQ(judged(row, {run_at(100), other}).verdict, Accepted::PASSED);
  other.record.summary.flops.convention = "megatron";
  EXPECT_EQ(outcome(row, {run_at(100), other}),
            "NOT_DECIDED FLOPs are counted by several conventions (megatron, mpt): set where = "
            "'output.flops_convention=megatron'");
  EXPECT_EQ(judged(at_100, {run_at(100), other}).verdict, Accepted::PASSED);
  // A figure without FLOPs that is too bad fails, whatever the conventions and what else is open.
  LoadedRun slow = run_at(40, "c.h5"), open = run_at(40, "d.h5");
  slow.record.summary.flops.convention = "megatron";
  open.record.outcome.verdict = "NOT VERIFIED";
  EXPECT_EQ(judged(at_100 + std::string(", verdict='valid'"), {slow, open}).verdict,
            Accepted::FAILED);
}

// The list names every attribute that is worse when larger: a new attribute must be put in or left
// out on purpose.
TEST(Accept, WhatIsWorse) {
  std::set<std::string> more;
  for (const std::string& name : attribute_names())
    if (worse_by_default(name) == "more") more.insert(name);
  EXPECT_EQ(more, (std::set<std::string>{"sec_per_it",
                                         "sec_per_it_min",
                                         "sec_per_it_max",
                                         "drift_percent",
                                         "drift_percent_per_hour",
                                         "gemm_ceiling_spread",
                                         "peak_memory_bytes",
                                         "final_loss",
                                         "held_out_loss",
                                         "evaluation_s",
                                         "steps_to_target",
                                         "tokens_to_target",
                                         "time_to_target_s",
                                         "skipped_steps",
                                         "resumed_steps_s",
                                         "resume_s",
                                         "checkpoint_write_s",
                                         "device_memory_bytes",
                                         "device_memory_used_bytes",
                                         "power_w",
                                         "power_limit_w",
                                         "energy_j_per_token",
                                         "temperature_c",
                                         "errors_corrected",
                                         "errors_uncorrected",
                                         "node_memory_bytes",
                                         "node_memory_used_bytes",
                                         "node_power_w"}));
  const std::string target = "figure='time_to_target_s', reference=100";
  LoadedRun run = run_at(1);
  run.record.summary.convergence.time_to_target_s = 300.0;
  EXPECT_EQ(judged(target, {run}).verdict, Accepted::FAILED);
  run.record.summary.convergence.time_to_target_s = 50.0;
  EXPECT_EQ(judged(target, {run}).verdict, Accepted::PASSED);
}

// No skipped step is the best there is, and can be required; other figures of 0 were not measured.
TEST(Accept, CountsBeginAtZero) {
  LoadedRun run = run_at(100, "b.h5");
  run.record.summary.skipped_steps = 0;
  EXPECT_EQ(outcome("figure='skipped_steps', reference=2", {run}),
            "PASSED skipped_steps 0, reference 2 (-100.0 %, 5 % allowed), 1 run");
  const std::string none = "figure='skipped_steps', reference=0";
  EXPECT_EQ(outcome(none, {run, run}),
            "PASSED skipped_steps 0, reference 0 (0.0 %, 5 % allowed), 2 runs, spread 0.0 %");
  const std::string json = accept_json({judged(none, {run})});
  EXPECT_NE(json.find("\"measured\": 0, \"change_percent\": 0"), std::string::npos) << json;
  run.record.summary.skipped_steps = 1;
  EXPECT_EQ(judged(none, {run}).verdict, Accepted::FAILED);
  run.record.summary.device.errors_uncorrected.reset();
  EXPECT_EQ(outcome("figure='errors_uncorrected', reference=0", {run}),
            "NOT_DECIDED b.h5 has no figure errors_uncorrected");
  run.record.summary.device.errors_uncorrected = 0.0;
  EXPECT_EQ(judged("figure='errors_uncorrected', reference=0", {run}).verdict, Accepted::PASSED);
  run.record.summary.flops.mfu = 0.0;
  EXPECT_EQ(outcome("figure='mfu', reference=0.5", {run}), "NOT_DECIDED b.h5 has no figure mfu");
  const std::string unknown = accept_json({judged("figure='mfu', reference=0.5", {run})});
  EXPECT_EQ(unknown.find("measured"), std::string::npos) << unknown;
  EXPECT_THROW(judged("figure='mfu', reference=0", {run}), Error);
}

// Nothing reaches 100 % of a right peak. Each utilisation is judged alone, and other figures do not
// depend on the peak.
TEST(Accept, AUtilisationAboveOneHundredPercentDecidesNothing) {
  LoadedRun run = run_at(100, "b.h5");
  run.record.summary.flops.mfu = 1.5;
  EXPECT_EQ(outcome("figure='mfu', reference=0.5", {run_at(100), run}),
            "NOT_DECIDED b.h5: WARNING: MFU above 100 %, the convention counts work that is not "
            "done, or the peak is too low");
  EXPECT_EQ(judged("figure='hfu', reference=0.5", {run}).verdict, Accepted::PASSED);
  EXPECT_EQ(judged(at_100, {run}).verdict, Accepted::PASSED);
  // A peak that is too low flatters: what does not reach the reference by it never does.
  EXPECT_EQ(judged("figure='mfu', reference=2", {run}).verdict, Accepted::FAILED);
  run.record.summary.flops.mfu = 0.5;
  run.record.summary.flops.hfu = 1.01;
  EXPECT_EQ(judged("figure='mfu', reference=0.5", {run}).verdict, Accepted::PASSED);
  EXPECT_EQ(judged("figure='hfu', reference=0.5", {run}).verdict, Accepted::NOT_DECIDED);
}

TEST(Accept, DriftOfEachRun) {
  std::vector<LoadedRun> runs = runs_at({100, 100});
  for (LoadedRun& run : runs) run.record.summary.rate.drift_percent.reset();
  EXPECT_EQ(judged("drift=2", runs).verdict, Accepted::NOT_DECIDED);
  runs[0].record.summary.rate.drift_percent = 1.5;
  runs[1].record.summary.rate.drift_percent = -2.0;
  EXPECT_EQ(judged("drift=2", runs).verdict, Accepted::PASSED);
  runs[1].record.summary.rate.drift_percent = -2.1;
  EXPECT_EQ(outcome("drift=2", runs), "FAILED 1.h5 drifts by -2.10 %, 2 % allowed");
  EXPECT_EQ(judged("runs='made'", runs).verdict, Accepted::PASSED);
}

// A figure that can be 0 or below is no less known then. Drifts up and down are judged by size.
TEST(Accept, ANegativeFigureIsNotMissing) {
  std::vector<LoadedRun> runs = runs_at({100, 100, 100});
  const auto drift = [&](double a, double b, double c) {
    runs[0].record.summary.rate.drift_percent = a;
    runs[1].record.summary.rate.drift_percent = b;
    runs[2].record.summary.rate.drift_percent = c;
    return outcome("figure='drift_percent', reference=2, tolerance=0", runs);
  };
  EXPECT_EQ(drift(-0.5, 0.0, -1.0),
            "PASSED drift_percent 0.5, reference 2 (-75.0 %, 0 % allowed), 3 runs, spread "
            "200.0 %");
  EXPECT_EQ(drift(-8.0, -8.0, 1.0).substr(0, 24), "FAILED drift_percent 8, ");
  runs[0].record.summary.rate.drift_percent.reset();
  EXPECT_EQ(outcome("figure='drift_percent', reference=2", runs),
            "NOT_DECIDED 0.h5 has no figure drift_percent");
  std::vector<LoadedRun> cold = {run_at(100, "b.h5")};
  cold[0].record.summary.device.temperature_c = -20.0;
  EXPECT_EQ(outcome("figure='temperature_c', reference=80", cold).substr(0, 25),
            "PASSED temperature_c -20,");
}

TEST(Accept, RunsThatBelongToARow) {
  LoadedRun four = run_at(400, "four.h5");
  set_key(four.record, "run", "name", std::string("wide_4"));
  four.record.summary.world_size = four.record.summary.nodes = 4;
  const std::vector<LoadedRun> runs = {run_at(100), four};
  const auto files = [&](const std::string& keys) { return judged(keys, runs).files; };
  using Files = std::vector<std::string>;
  EXPECT_EQ(files(""), (Files{"a.h5", "four.h5"}));
  EXPECT_EQ(files("nodes=4"), Files{"four.h5"});
  EXPECT_EQ(files("ranks=2"), Files{"a.h5"});
  EXPECT_EQ(files("runs='wide*'"), Files{"four.h5"});
  EXPECT_EQ(files("where='run.name=made', 'precision.compute = fp32'"), Files{"a.h5"});
  EXPECT_EQ(outcome(at_100 + ", ranks=8", runs), "NOT_DECIDED none of 2 runs belongs to this row");
  four.record.summary.device.power_w.reset();
  EXPECT_EQ(outcome("figure='power_w', reference=65", {four}),
            "NOT_DECIDED four.h5 has no figure power_w");
}

TEST(Accept, MistakesOfASpecificationAreNamed) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_spec("s.in", text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("&a figure='tokens_per_s', reference=1 / &b rules='met' /"), "accepted");
  EXPECT_EQ(message(" "),
            "s.in:1:1: holds no requirement, as in &speed figure = 'tokens_per_s', reference = "
            "100 /");
  EXPECT_EQ(message("&a\n  figur='x' /"),
            "s.in:2:3: unknown key 'figur' of a requirement; did you mean 'figure'?");
  EXPECT_EQ(message("&a figure='token_per_s', reference=1 /"),
            "s.in:1:1: &a has an unknown figure 'token_per_s'; did you mean 'tokens_per_s'?");
  EXPECT_EQ(message("&a reference=1 /"), "s.in:1:1: &a has a reference without a figure");
  EXPECT_NE(message("&a figure='mfu' /").find("a figure without a reference; gptpost accept"),
            std::string::npos);
  EXPECT_EQ(message("&a spread=1 /"), "s.in:1:1: &a has a spread without a figure");
  EXPECT_NE(message("&a where='nodes' /").find("name=value is expected"), std::string::npos);
  EXPECT_NE(message("&a where='node=1' /").find("did you mean 'nodes'?"), std::string::npos);
  EXPECT_NE(message("&a rules='yes' /").find("a.rules = 'yes' is not allowed"), std::string::npos);
  EXPECT_NE(message("&a tolerance=-1 /").find("a.tolerance = -1.0 is not allowed"),
            std::string::npos);
  EXPECT_NE(message("&a figure='mfu', reference=0.5, tolerance=100 /")
                .find("with which any figure passes"),
            std::string::npos);
  EXPECT_EQ(message("&a figure='final_loss', reference=5, tolerance=100 /"), "accepted");
  EXPECT_NE(message("&a repeats=0 /").find("more than 0"), std::string::npos);
  EXPECT_NE(message("&a rules='met' / &a rules='any' /").find("&a is given twice"),
            std::string::npos);
  EXPECT_NE(message("&a rules='met', rules='any' /").find("a.rules is given twice"),
            std::string::npos);
}

std::vector<AcceptResult> one_of_each() {
  return judge(parse_spec("s.in",
                          "&good figure='tokens_per_s', reference=100 / &bad figure='tokens_per_s',"
                          " reference=200 / &open ranks=9 /"),
               {run_at(100, "<a & \"b\">.h5")});
}

TEST(Accept, TextBeginsWithTheAnswer) {
  EXPECT_EQ(accept_text(one_of_each()),
            "NOT ACCEPTED: 1 of 3 rows PASSED, 1 FAILED, 1 NOT DECIDED\n"
            "PASSED       good: tokens_per_s 100, reference 100 (0.0 %, 5 % allowed), 1 run\n"
            "FAILED       bad: tokens_per_s 100, reference 200 (-50.0 %, 5 % allowed), 1 run\n"
            "NOT DECIDED  open: none of 1 run belongs to this row\n");
  const std::vector<AcceptResult> good = {one_of_each()[0]};
  EXPECT_EQ(accept_text(good).substr(0, 59),
            "ACCEPTED: 1 of 1 rows PASSED, 0 FAILED, 0 NOT DECIDED\nPASSE");
}

// A file that cannot be read may be the one that would have failed: every output says so.
TEST(Accept, NothingBesideAFileThatCannotBeRead) {
  const std::vector<AcceptResult> good = {one_of_each()[0]};
  const std::vector<std::string> unreadable = {"a<b.h5: cannot open: no such file"};
  const std::string text = accept_text(good, unreadable);
  EXPECT_EQ(text.find("NOT ACCEPTED: 1 of 1 rows PASSED, 0 FAILED, 0 NOT DECIDED, 1 NOT READABLE"),
            0u)
      << text;
  EXPECT_NE(text.find("\nNOT READABLE a<b.h5: cannot open: no such file\n"), std::string::npos)
      << text;
  const std::string json = accept_json(good, unreadable);
  EXPECT_EQ(json.find("{\"accepted\": false, "), 0u) << json;
  EXPECT_NE(json.find("\"unreadable\": [\"a<b.h5: cannot open: no such file\"]"), std::string::npos)
      << json;
  const std::string junit = accept_junit("s.in", good, unreadable);
  EXPECT_NE(junit.find(" tests=\"2\" failures=\"0\" errors=\"1\">"), std::string::npos) << junit;
  EXPECT_NE(junit.find("name=\"readable a&lt;b.h5\">\n    <error message=\"a&lt;b.h5: cannot open"),
            std::string::npos)
      << junit;
}

// The same run under another path, or the same file twice; another run differs in any of date,
// command line, hosts, job and times.
TEST(Accept, ARunCountsOnce) {
  std::vector<LoadedRun> runs = {run_at(100, "a.h5"), run_at(100, "b.h5")};
  EXPECT_THROW(require_different_runs(runs, "accept"), Error);
  const auto differs = [&](const std::function<void(Record&)>& change) {
    runs[1] = run_at(100, "b.h5");
    change(runs[1].record);
    EXPECT_NO_THROW(require_different_runs(runs, "accept"));
  };
  differs([](Record& r) { r.date_utc = "2024-03-09T10:11:13Z"; });
  differs([](Record& r) { r.provenance.argv += " run.seed=2"; });
  differs([](Record& r) { r.provenance.hostnames[1] = "node2"; });
  differs([](Record& r) { r.provenance.slurm = "SLURM_JOB_ID=18\n"; });
  differs([](Record& r) { r.steps.time_s[2] += 1e-9; });
}

TEST(Accept, ExitStatus) {
  const std::vector<AcceptResult> all = one_of_each();
  EXPECT_EQ(accept_status(all), 9);
  EXPECT_EQ(accept_status({all[0], all[2]}), 10);
  EXPECT_EQ(accept_status({all[0]}), 0);
}

TEST(Accept, JsonAndJunit) {
  const std::string json = accept_json(one_of_each());
  EXPECT_EQ(
      json.find("{\"accepted\": false, \"rows\": [{\"row\": \"good\", \"verdict\": \"PASSED\""), 0u)
      << json;
  EXPECT_NE(json.find("\"measured\": 100, \"change_percent\": -50"), std::string::npos) << json;
  const std::string junit = accept_junit("s.in", one_of_each());
  EXPECT_NE(junit.find("<testsuite name=\"s.in\" tests=\"3\" failures=\"1\" errors=\"1\">"),
            std::string::npos)
      << junit;
  EXPECT_NE(junit.find("&lt;a &amp; &quot;b&quot;&gt;.h5</failure>"), std::string::npos) << junit;
  EXPECT_NE(junit.find("<error message=\"none of 1 run"), std::string::npos) << junit;
}

// The same run passes without any tolerance, and what differs a little does not read zero.
TEST(Accept, AWrittenReferenceHasEveryDigit) {
  const double rate = 847.600758123456;
  std::vector<AcceptRow> rows = parse_spec("s.in", written_spec({run_at(rate)}));
  rows[0].tolerance_percent = 0.0;
  EXPECT_EQ(rows[0].reference, rate);
  EXPECT_EQ(accept_status(judge(rows, {run_at(rate)})), 0);
  const AcceptResult less = judge(rows, {run_at(rate * (1.0 - 3.2e-4))}).at(0);
  EXPECT_EQ(less.verdict, Accepted::FAILED);
  EXPECT_NE(less.reason.find(" (-0.032 %, 0 % allowed)"), std::string::npos) << less.reason;
}

// Runs are accepted by the specification that was written of them.
TEST(Accept, WritesASpecificationOfWhatRunsReached) {
  std::vector<LoadedRun> runs = runs_at({100, 110, 105});
  LoadedRun odd = run_at(7);
  set_key(odd.record, "run", "name", std::string("it's"));
  odd.record.summary.rules.outcome = "";
  runs.push_back(odd);
  const std::vector<AcceptRow> rows = parse_spec("s.in", written_spec(runs));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].runs, "it's");
  EXPECT_EQ(rows[0].rules, "any");
  EXPECT_EQ(rows[1].reference, 105);
  EXPECT_EQ(rows[1].repeats, 3);
  EXPECT_EQ(rows[1].rules, "met");
  EXPECT_EQ(rows[1].ranks, 2);
  EXPECT_EQ(accept_status(judge(rows, runs)), 0);
  runs[0].record.outcome.verdict = "INVALID";
  EXPECT_THROW(written_spec({runs[0]}), Error);
  odd.record.summary.rate.tokens_per_s = 0.25;  // of a large model on a small machine
  EXPECT_EQ(parse_spec("s.in", written_spec({odd})).at(0).reference, 0.25);
  odd.record.summary.rate.tokens_per_s = 0.0;
  EXPECT_THROW(written_spec({odd}), Error);
}

}  // namespace
}  // namespace gptbench
