#include "run/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace gptbench {
namespace {

// Two ranks, four steps, the first of them warm-up, in which rank 0 was slow. Of the others rank 0
// takes 2 + 2 + 4 = 8 s and rank 1 3 + 3 + 3 = 9 s.
Record two_ranks() {
  Record r;
  r.outcome.verdict = "VALID";
  r.outcome.status = "OK";
  r.date_utc = "2024-03-09T10:11:12Z";
  r.machine = "made machine";
  r.git_commit = "0123456789ab";
  r.software_version = "0.1.0";
  r.steps.warmup_steps = 1;
  r.steps.loss_scale = {65536, 65536, 32768, 32768};
  r.timing = {{"step", "s", "", {50, 1, 2, 3, 2, 3, 4, 3}, 4, 2, false},
              {"forward", "s", "", {9, 9, 1, 1, 1, 1.5, 1, 2}, 4, 2, false},
              {"communication", "s", "", {9, 9, 1, 3e-4, 1, 3e-4, 1, 3e-4}, 4, 2, false}};
  r.memory = {{"parameters", "", {3 << 20, 5 << 10}, false}, {"peak", "", {512, 1536}, false}};
  r.comm = {
      {"data", "all_reduce", {2048, 1048576}, {7, 8}, {0, 0}, {0.5, 0.25}, {1e-3, 2e-3}, false}};
  Summary& s = r.summary;
  s.num_params = 1234567;
  s.world_size = 2;
  s.nodes = 1;
  s.timed_steps = 3;
  s.rate.sec_per_it = 2.5;
  s.rate.sec_per_it_min = 2.0;
  s.rate.sec_per_it_max = 4.0;
  s.rate.tokens_per_s = 4505.6;
  s.rate.samples_per_s = 8.8;
  s.flops.per_step = {{"mpt", 3e13},   {"megatron", 6e13},         {"causal", 1.5e13},
                      {"exact", 2e13}, {"exact_recomputed", 1e13}, {"exact_fp8", 1.5e13}};
  s.flops.convention = "causal";
  s.flops.model_tflops_per_device = 3.0;
  s.flops.hardware_factor = 4.0 / 3.0;
  s.peak.tflops = 20.0;
  s.peak.source = "deck";
  s.flops.mfu = 0.15;
  s.flops.hfu = 0.2;
  s.convergence.final_loss = 9.75;
  s.skipped_steps = 1;
  return r;
}

// FLOPs / (2.5 s * 2 ranks), megatron without its recomputation: 6e13 / (4/3). In fp8 15 of 30.
// Rank 1's means of three steps: 9 / 3, 4.5 / 3, 9e-4 / 3; of messages the rank that is exposed
// longest.
TEST(Report, PerformanceOfTheSlowestRankOverTimedSteps) {
  EXPECT_EQ(performance_report(two_ranks()),
            "Time per step, median              2.50 s  (2.00 s to 4.00 s, 3 timed)\n"
            "Throughput                         4505.6 tokens/s, 8.8 sequences/s\n"
            "Model TFLOP/s per rank, by FLOPs convention\n"
            "  causal                           3.0000  (the deck's convention)\n"
            "  exact                            4.0000\n"
            "  megatron                         9.0000\n"
            "  mpt                              6.0000\n"
            "In fp8                              50.0 % of the FLOPs executed\n"
            "Peak per rank                     20.0000 TFLOP/s (deck)\n"
            "Loss scale                          32768 in the last step; 1 of 4 steps skipped and "
            "not timed\n"
            "Time of the slowest rank (1), mean of 3 timed steps\n"
            "  step                             3.00 s  100.0 %\n"
            "  forward                          1.50 s   50.0 %\n"
            " the same by kind of work\n"
            "  communication                  0.0003 s    0.0 %\n"
            "Memory, largest over ranks\n"
            "  parameters                        3.0 MiB\n"
            "  peak                           0.0015 MiB\n"
            "Messages per rank, after warm-up    calls       payload      total    exposed\n"
            "  data all_reduce                       8       1.0 MiB  250.00 ms    2.00 ms\n");
}

// Each column has the unit of its largest value, here that of the other row.
TEST(Report, MessagesHaveOneUnitPerColumn) {
  Record r = two_ranks();
  r.comm.push_back({"world", "barrier", {256, 256}, {9, 9}, {0, 0}, {2.5, 2.5}, {7e-5, 7e-5}});
  const std::string report = performance_report(r);
  EXPECT_NE(report.find("  data all_reduce                       8       1.0 MiB     0.25 s    "
                        "2.00 ms\n"
                        "  world barrier                         9    0.0002 MiB     2.50 s   "
                        "0.070 ms\n"),
            std::string::npos)
      << report;
}

// Warm-up of 2, steps 1 and 4 skipped. Sums over the timed steps 2, 3, 5 and 6: 20 s of rank 0, 24
// s of rank 1. Rank 0 is slower in the warm-up and in skipped steps, by far.
TEST(Report, BreaksDownTheTimedStepsAlone) {
  Record r = two_ranks();
  r.steps.warmup_steps = 2;
  r.summary.timed_steps = 4;
  r.steps.loss = {7, 6, 5, 4, 3, 2, 1.5};
  r.steps.skipped = {0, 1, 0, 0, 1, 0, 0};
  r.timing = {{"step", "s", "", {900, 1, 900, 1, 5, 6, 5, 6, 900, 1, 5, 6, 5, 6}, 7, 2},
              {"forward", "s", "", {900, 1, 900, 1, 1, 2, 1, 2, 900, 1, 1, 2, 1, 3}, 7, 2}};
  const std::string report = performance_report(r);
  EXPECT_NE(report.find("slowest rank (1), mean of 4 timed steps"), std::string::npos) << report;
  EXPECT_NE(report.find("6.00 s  100.0 %"), std::string::npos) << report;
  // 2 + 2 + 2 + 3 = 9 s of 24 s, over 4 steps
  EXPECT_NE(report.find("2.25 s   37.5 %"), std::string::npos) << report;
}

TEST(Report, WithoutTimedStepsPeakOrRecomputation) {
  Record r = two_ranks();
  r.comm.clear();
  r.steps.loss_scale.clear();
  r.summary.timed_steps = 0;
  EXPECT_EQ(performance_report(r),
            "No step was timed.\n"
            "Memory, largest over ranks\n"
            "  parameters                        3.0 MiB\n"
            "  peak                           0.0015 MiB\n");
  r.summary.timed_steps = 3;
  r.summary.peak.tflops = 0.0;
  EXPECT_EQ(performance_report(r).find("Peak"), std::string::npos);
  EXPECT_EQ(performance_report(r).find("Messages"), std::string::npos);
}

TEST(Report, Banner) {
  const std::string edge(80, '=');
  EXPECT_EQ(banner(two_ranks()), edge + "\ngptbench 0.1.0  commit 0123456789ab  " +
                                     "2024-03-09T10:11:12Z\n" + edge +
                                     "\n2 ranks on 1 node: made machine\n");
}

// 3 TFLOP/s of each of two ranks.
TEST(Report, HeadlineOfAValidRun) {
  Record r = two_ranks();
  r.summary.peak_memory_bytes = 3.0 * (1 << 20);
  const std::string edge(80, '=');
  const std::string expected =
      edge +
      "\n"
      "VALID           3 timed steps, 2.50 s per step (2.00 s to 4.00 s)\n"
      "Total           6 TFLOP/s (causal), 4505.6 tokens/s, 8.8 sequences/s\n"
      "Per rank        3 TFLOP/s, 2252.8 tokens/s\n"
      "MFU             15.0 % of 20 TFLOP/s per rank (deck), HFU 20.0 %\n"
      "Memory          3.0 MiB on the rank with the highest peak\n"
      "Result          out/result.h5\n" +
      edge + "\n";
  EXPECT_EQ(headline(r, "out/result.h5"), expected);
}

// Behind checkpoints of a run of 6 s of steps, 2 s of waiting.
TEST(Report, RemarksOfARunThatHasThemAll) {
  Record r = two_ranks();
  EXPECT_EQ(remarks(r), "");
  r.steps.time_s = {2.0, 1.0, 2.0, 1.0};
  r.steps.checkpoint_s = {0.0, 1.5, 0.0, 0.5};
  Summary& s = r.summary;
  s.resumed.from = "ck/step-00000004.h5";
  s.resumed.steps = 4;
  s.resumed.load_s = 0.5;
  s.checkpoint.bytes = 4 << 20;
  s.checkpoint.write_s = 2.0;
  s.rules = {"not met", "1.25 s are timed; the verdict is INVALID"};
  r.config = {{"run", "class", std::string("demo"), "1", ""},
              {"run", "tier", std::string("tuned"), "1", ""}};
  s.rate.drift_percent = -0.25;
  s.rate.drift_percent_per_hour = -1.5;
  s.device.temperature_c = 71.5;
  s.convergence.held_out_loss = 2.5;
  s.convergence.evaluation_s = 0.25;
  r.steps.held_out_step = {4};
  r.steps.held_out_loss = {2.5};
  const std::string without_drift =
      "Rules           not met: class demo, tuned: 1.25 s are timed; the verdict is\n"
      "                INVALID\n"
      "Resumed         after step 4 of ck/step-00000004.h5, loaded in 500.00 ms\n"
      "Held-out loss   2.5000 after step 4; evaluated in 250.00 ms, not part of any\n"
      "                step\n"
      "Checkpoints     4.0 MiB each, written in 2.00 s (2.097 MB/s per node); training\n"
      "                waited 500.00 ms per step, 25.0 % of its time\n";
  EXPECT_EQ(remarks(r), without_drift);
  // Ten minutes of steps tell of drift, in a line.
  s.timed_steps = 240;
  EXPECT_EQ(remarks(r),
            "Drift           step rate -0.25 %, -1.50 % per hour; up to 72 degC\n" + without_drift);
  // The box has its six lines.
  s.peak_memory_bytes = 1 << 20;
  const std::string box = headline(r, "f");
  EXPECT_EQ(std::count(box.begin(), box.end(), '\n'), 8) << box;
}

TEST(Report, UtilisationAboveTheCeilingIsFlaggedAndAnUnsteadyOneLeftOut) {
  Record r = two_ranks();
  r.summary.flops.mfu = r.summary.flops.hfu = 1.109;
  EXPECT_NE(
      headline(r, "f").find("110.9 % of 20 TFLOP/s per rank (deck); WARNING: MFU above 100 %"),
      std::string::npos)
      << headline(r, "f");
  EXPECT_NE(last_line(r, "f").find(" mfu=1.1090 warning=mfu_above_100_percent loss="),
            std::string::npos)
      << last_line(r, "f");
  r.summary.flops.mfu = 0.9;
  EXPECT_NE(last_line(r, "f").find(" mfu=0.9000 warning=hfu_above_100_percent loss="),
            std::string::npos)
      << last_line(r, "f");
  r.summary.flops.mfu = r.summary.flops.hfu = 0.0;
  r.summary.peak.note = "the ceiling varies";
  EXPECT_NE(headline(r, "f").find("MFU             none: the ceiling varies\n"), std::string::npos)
      << headline(r, "f");
  // A long reason is cut behind its first clause, or a word: the box has six lines.
  for (const auto& [note, cut] :
       {std::pair{"the measured GEMM ceiling varies by 14.4 % (allowed: 3 %); repeat on a quiet "
                  "machine or set output.peak_tflops",
                  "the measured GEMM ceiling varies by 14.4 % (gptpost show)"},
        std::pair{"no data sheet of 'a processor of a name this long' with 12.00 GiB; see gptbench",
                  "no data sheet of 'a processor of a name (gptpost show)"}}) {
    r.summary.peak.note = note;
    const std::string box = headline(r, "f");
    EXPECT_NE(box.find(std::string("\nMFU             none: ") + cut + "\nResult "),
              std::string::npos)
        << box;
  }
  EXPECT_NE(last_line(r, "f").find(" mfu=none "), std::string::npos);
}

// 1.5e13 FLOPs by `causal` in 2.5 s.
TEST(Report, FigureOfMeritAndRulesOfAClass) {
  Record r = two_ranks();
  r.summary.flops.fom_tflops = 6.0;
  r.summary.flops.convention = "exact";
  r.summary.flops.model_tflops_per_device = 4.0;
  r.summary.flops.mfu = 0.2;
  r.summary.flops.hfu = 0.25;
  // One aggregate figure alone, by the convention that the deck names.
  EXPECT_NE(headline(r, "f").find("\nTotal           8 TFLOP/s (exact), "), std::string::npos);
  EXPECT_EQ(headline(r, "f").find("causal"), std::string::npos) << headline(r, "f");
  r.config = {{"run", "class", std::string("demo"), "1", ""},
              {"run", "tier", std::string("tuned"), "1", ""}};
  r.summary.rules.outcome = "met";
  // Of a class that is the figure of merit: 6 TFLOP/s of two ranks with a peak of 20 each.
  EXPECT_NE(headline(r, "f").find("\nTotal           6 TFLOP/s (causal), 4505.6 tokens/s, 8.8 "
                                  "sequences/s\nPer rank        3 TFLOP/s, 2252.8 tokens/s\n"
                                  "MFU             15.0 % of 20 TFLOP/s per rank (deck), HFU 20.0 "
                                  "%\n"),
            std::string::npos)
      << headline(r, "f");
  EXPECT_EQ(headline(r, "f").find("exact"), std::string::npos) << headline(r, "f");
  EXPECT_EQ(remarks(r), "Rules           met: class demo, tuned\n");
  EXPECT_NE(last_line(r, "f").find(" class=demo tier=tuned rules=met fom_tflops=6 file=f\n"),
            std::string::npos)
      << last_line(r, "f");
  r.summary.rules.outcome = "not met";
  r.summary.rules.broken = "1.25 s are timed; the verdict is INVALID";
  EXPECT_NE(last_line(r, "f").find(" rules=not_met "), std::string::npos);
  // A long list of broken rules is cut after its first lines.
  for (int key = 0; key < 30; ++key) r.summary.rules.broken += "; model.hidden_size = 1";
  const std::string many = remarks(r);
  EXPECT_NE(many.find("\n                ... gptpost show names all\n"), std::string::npos) << many;
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 2) << many;
}

// A report of 60 lines, 20 of which come before the keys: what can be known before the first step
// is reserved, no more.
TEST(Report, RoomForTheKeysOfADeckAndThePlan) {
  const auto room = [](const Config& config, const ReportAhead& ahead = {}) {
    return room_for_deck_and_plan(config, ahead, std::string(20, '\n'));
  };
  Config config;
  config.run.verify = false;
  config.run.steps = 5;
  EXPECT_EQ(room(config), 60 - 20 - 6 - 13);
  config.run.steps = 1000;
  EXPECT_EQ(room(config), 60 - 20 - 11 - 13);
  config.run.limits.duration_s = 1.0;
  config.run.steps = 5;
  config.run.verify = true;
  int64_t expected = 60 - 20 - 12 - 13 - 1;
  EXPECT_EQ(room(config), expected);
  config.output.trace_step = 1;
  config.precision.compute = Precision::fp16;
  EXPECT_EQ(room(config), expected -= 2);
  // A result or a checkpoint that is there.
  ReportAhead ahead;
  ahead.has_earlier_result = true;
  EXPECT_EQ(room(config, ahead), expected -= 1);
  config.run.start.resume = "auto";
  EXPECT_EQ(room(config, ahead), expected);
  ahead.has_checkpoint = true;
  EXPECT_EQ(room(config, ahead), expected -= 3);
  config.run.start.resume = "ck";
  ahead.has_checkpoint = false;
  EXPECT_EQ(room(config, ahead), expected);
  // MFU in two lines: a note on the clock, or HFU behind a long source.
  ahead.has_data_sheet = true;
  EXPECT_EQ(room(config, ahead), expected - 1);
  ahead.has_data_sheet = false;
  config.memory.activation_checkpointing = Recompute::full;
  EXPECT_EQ(room(config, ahead), expected - 1);
  config.output.peak_tflops = 1.0;
  EXPECT_EQ(room(config, ahead), expected);
}

// Every line that a report may have, behind a banner with a warning of three lines.
TEST(Report, TheLongestReportHasSixtyLines) {
  Config config;
  config.run.problem_class = "demo";
  config.run.limits.duration_s = 60.0;
  config.run.start.resume = "auto";
  config.run.verify = true;
  config.precision.compute = Precision::fp16;
  config.convergence.evaluate_every = 5;
  config.checkpoint.directory = "ck";
  config.output.trace_step = 7;
  const int64_t room = room_for_deck_and_plan(config, {true, true, true}, std::string(11, '\n'));
  const Deck deck = parse_deck("a.in",
                               "&run seed=2, class='demo' / &batch micro_batch_size=2 / &memory "
                               "checkpoint_every=2 / &output trace_step=7 / &optimizer lr=1. / "
                               "&convergence evaluate_every=5 / &checkpoint directory='ck' /",
                               {});
  const std::string text = deck_and_plan(deck, std::string(12, '\n'), room);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), room) << text;
}

// Keys take what the plan leaves, and six lines at any rate; the plan takes what they leave, and
// four.
TEST(Report, KeysAndPlanShareTheirRoom) {
  const Deck few = parse_deck("a.in", "&run steps=5 /", {});
  std::string groups;
  for (const char* const group :
       {"run seed=2", "model num_layers=2", "batch micro_batch_size=2", "data short_seq_prob=0.5",
        "optimizer lr=1.", "output trace_step=1", "memory checkpoint_every=2",
        "precision compute='bf16'"})
    groups += std::string("&") + group + " / ";
  const Deck many = parse_deck("a.in", groups, {});
  const std::string plan = "1\n2\n3\n4\n5\n6\n7\n8\n";
  EXPECT_EQ(deck_and_plan(few, plan, 12),
            "  &run          steps=5\n" + rule('-') + plan + rule('-'));
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  for (const int64_t room : {18, 17, 16, 15, 14}) {
    const std::string text = deck_and_plan(many, plan, room);
    EXPECT_EQ(lines(text), room) << text;
    EXPECT_EQ(text.find("more, which --verbose prints") == std::string::npos, room == 18) << text;
    EXPECT_EQ(text.find("\n                ... --verbose prints all\n") == std::string::npos,
              room >= 16)
        << text;
  }
  EXPECT_EQ(lines(deck_and_plan(many, plan, -3)), 6 + 4 + 2);
}

// A run that was not trained has no figures, and prints no zeros in their place.
TEST(Report, HeadlineWithoutATimedStep) {
  Record r = two_ranks();
  r.outcome.verdict = "NOT VERIFIED";
  r.outcome.status = "OOM";
  r.outcome.reason = "out of memory, predicted: 3 GiB";
  r.summary = Summary{};
  r.summary.world_size = 2;
  r.summary.flops.convention = "causal";
  r.steps.loss.clear();
  const std::string edge(80, '=');
  EXPECT_EQ(headline(r, "out/result.h5"), edge +
                                              "\n"
                                              "NOT VERIFIED    no step was timed\n"
                                              "Result          out/result.h5\n"
                                              "OOM: out of memory, predicted: 3 GiB\n" +
                                              edge + "\n");
  EXPECT_EQ(last_line(r, "f"),
            "GPTBENCH status=OOM verdict=NOT_VERIFIED params=0 ranks=2 steps=0 sec_per_it=none "
            "tokens_per_s=none tflops=none total_tflops=none convention=causal mfu=none loss=none "
            "file=f\n");
}

// The speed of a wrong computation is no result.
TEST(Report, InvalidAndFailedRunsHaveNoFigureToQuote) {
  for (const char* const verdict : {"INVALID", "NOT VERIFIED"}) {
    Record r = two_ranks();
    r.outcome.verdict = verdict;
    r.outcome.status = "FAILED";
    r.summary.timed_steps = 1;
    r.summary.flops.mfu = 1.5;
    r.config = {{"run", "class", std::string("demo"), "1", ""},
                {"run", "tier", std::string("tuned"), "1", ""}};
    r.summary.rules = {"not met", "the verdict"};
    const std::string box = headline(r, "f");
    EXPECT_NE(box.find("1 timed step, 2.50 s per step (2.00 s to 4.00 s)\nTotal           none: no "
                       "figure of a run that is INVALID or FAILED may be quoted\nResult "),
              std::string::npos)
        << box;
    for (const char* const figure : {"FLOP/s", "tokens/s", "MFU"})
      EXPECT_EQ(box.find(figure), std::string::npos) << box;
    const std::string line = last_line(r, "f");
    EXPECT_NE(line.find(" steps=1 sec_per_it=none tokens_per_s=none tflops=none total_tflops=none "
                        "convention=causal mfu=none loss="),
              std::string::npos)
        << line;
    EXPECT_NE(line.find(" fom_tflops=none "), std::string::npos) << line;
  }
  Record unverified = two_ranks();
  unverified.outcome.verdict = "NOT VERIFIED";
  for (const char* const status : {"OK", "TIMEOUT"}) {
    unverified.outcome.status = status;
    EXPECT_NE(headline(unverified, "f").find("tokens/s"), std::string::npos);
    EXPECT_EQ(last_line(unverified, "f").find("tokens_per_s=none"), std::string::npos);
  }
}

// One unit in a line.
TEST(Report, TimesOfStepsAreInOneUnit) {
  Record r = two_ranks();
  r.summary.rate.sec_per_it = 0.91916;
  r.summary.rate.sec_per_it_min = 0.88182;
  r.summary.rate.sec_per_it_max = 1.12;
  EXPECT_NE(headline(r, "f").find(", 919.16 ms per step (881.82 ms to 1120.00 ms)\n"),
            std::string::npos)
      << headline(r, "f");
  EXPECT_NE(performance_report(r).find("919.16 ms  (881.82 ms to 1120.00 ms, 3 timed)\n"),
            std::string::npos);
}

// Shares of the slowest rank, 1: 4.5 of 9 s forward, 0.9 ms exposed.
TEST(Report, TimeAndChecksInBrief) {
  Record r = two_ranks();
  EXPECT_EQ(time_shares(r), "Time            forward 50.0 %; of that, communication 0.0 %\n");
  r.verify = {{"initial_loss", "|loss - ln V|", 0.25, 0.5, true},
              {"replicas_identical", "differing", 3.0, 0.0, false}};
  EXPECT_EQ(checks_in_brief(r),
            "Checks          1 of 2 passed\n"
            "replicas_identical                            3              0  FAILED\n");
}

TEST(Report, ChecksAndVerdict) {
  Record r = two_ranks();
  r.verify = {{"initial_loss", "|loss - ln V|", 0.25, 0.5, true},
              {"replicas_identical", "differing", 3.0, 0.0, false}};
  r.kernels_not_verified = {"dropout"};
  r.outcome.verdict = "INVALID";
  r.outcome.reason = "one replica differs";
  EXPECT_EQ(verification_report(r),
            "check                                     value      threshold\n"
            "initial_loss                               0.25            0.5  PASSED\n"
            "    |loss - ln V|\n"
            "replicas_identical                            3              0  FAILED\n"
            "    differing\n"
            "Operations that the reduced model did not exercise:\n"
            "    dropout\n" +
                std::string(80, '-') +
                "\nVerdict: INVALID   Status: OK\n"
                "one replica differs\n");
}

TEST(Report, LastLine) {
  Record r = two_ranks();
  const std::string before_loss =
      "GPTBENCH status=OK verdict=VALID params=1234567 ranks=2 steps=3 sec_per_it=2.5 "
      "tokens_per_s=4505.6 tflops=3 total_tflops=6 convention=causal mfu=0.1500 loss=";
  r.steps.loss = {9.75};
  EXPECT_EQ(last_line(r, "out/result.h5"), before_loss + "9.750000 file=out/result.h5\n");
  r.summary.convergence.final_loss = -std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(last_line(r, "none"), before_loss + "none file=none\n");
  // Figures are quoted with their precision.
  r.config = {{"precision", "compute", std::string("bf16"), "1", ""}};
  EXPECT_NE(last_line(r, "f").find(" convention=causal precision=bf16 mfu="), std::string::npos);
  r.config = {{"precision", "compute", std::string("fp32"), "1", ""},
              {"precision", "tf32", true, "1", ""}};
  EXPECT_NE(last_line(r, "f").find(" convention=causal precision=tf32 mfu="), std::string::npos);
}

}  // namespace
}  // namespace gptbench
