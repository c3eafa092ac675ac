// The page of `show`, what it says about regions of a step, and how gptpost ends.
#include <gtest/gtest.h>

#include <cmath>
#include <new>
#include <stdexcept>

#include "base/error.h"
#include "has.h"
#include "made_record.h"
#include "post/commands.h"
#include "record/regions.h"

namespace gptbench {
namespace {

TEST(ExitStatus, OfWhateverIsThrown) {
  struct Case {
    std::function<int()> body;
    int status;
    const char* line;
  };
  const Case cases[] = {
      {[] { return 0; }, 0, ""},
      {[]() -> int { throw Error(Exit::usage, "no \x1b[1m"); }, 2, "gptpost: no \\x1b[1m\n"},
      {[]() -> int { throw std::bad_alloc(); }, 3, "gptpost: out of memory\n"},
      {[] { return std::stoi("99999999999"); }, 7, "gptpost: internal error: stoi\n"},
      {[]() -> int { throw 1; }, 7, "gptpost: internal error\n"},
  };
  for (const Case& c : cases) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(exit_status_of(c.body), c.status);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), c.line);
  }
}

// Figures of made_record.cpp. 8 sequences, 3 * 2 at once: 2 micro-batches. TFLOP/s of the other
// conventions are FLOPs / (32 s * 2 ranks): 6.6 / 64 = 0.103. In fp8 2.6 of 6.5. Rank 1 is the
// slowest: of 2 | 4, 6, 8 s forward the median without warm-up is 6 s, 18.75 % of 32 s.
TEST(Show, PageOf80ColumnsWithEverything) {
  Record r = made_record();
  set_key(r, "parallel", "tensor_parallel", int64_t{3});
  set_key(r, "parallel", "pipeline_parallel", int64_t{4});
  set_key(r, "parallel", "context_parallel", int64_t{5});
  set_key(r, "batch", "micro_batch_size", int64_t{3});
  r.summary.flops.per_step["exact_fp8"] = 2.6e12;
  r.memory.push_back({"workspace", "", {4096}, true});
  EXPECT_EQ(show_page("out/result.h5", r),
            R"(-- gptbench result -------------------------------------------------------------
  file                  out/result.h5
  status                OK, VALID
  reason                a note with "quotes" | bars and é
  run                   made
  date (UTC)            2024-03-09T10:11:12Z
  machine               made machine
  software              gptbench 0.1.0, commit 0123456789ab
-- run -------------------------------------------------------------------------
  model                 GPT2-124M, 124,475,904 parameters
  shape                 12 layers, hidden size 768, 12 heads, sequence 1024
  precision             fp32, parameters fp32, reduced in fp32
  recomputation         none
  ranks                 2 on 1 node
  decomposition         data 2, tensor 3, pipeline 4, context 5, ZeRO 0
  batch                 8 sequences: 2 micro-batches of 3 per replica
  time per step         32.00 s (median; 31.50 s to 33.00 s in 3 steps)
  drift                 step rate changed by -0.25 % over the timed steps
  throughput            256.0 tokens/s, 128.0 per device, 0.250 sequences/s
  model TFLOP/s         0.2200 in total, 0.1100 per device (mpt), with
                        recomputation 0.1200
  utilisation           MFU 48.90 %, HFU 53.30 % of 0.225 TFLOP/s (measured GEMM
                        ceiling)
  other conventions     causal 0.103, exact 0.102, megatron 0.108
  in fp8                40.0 % of the FLOPs executed
  loss                  10.9800 at step 1, 9.7500 at the last
  held-out loss         9.8750, target reached after 2 steps, 71.500 s, 16,384
                        tokens
  loss scale            65536 at step 1, 32768 at the last, steps skipped: 1
  checkpoints           4768.4 MiB each, written in 2.50 s: 2.000 GB/s per node
  stall                 93.75 ms per step, 187.50 ms per checkpoint; overhead
                        0.27 %
  time to resume        1.50 s
-- sensors ---------------------------------------------------------------------
  power per device      65.5 W of 120 W
  power per node        131.0 W
  energy per token      0.250 J
  utilisation           97.0 %
  temperature           72 degC at most
  errors of memory      4 corrected, 0 not
  clock                 2.20 GHz
  clock of the host     2.25 GHz
  memory of a node      6198.9 MiB used of 22.35 GiB
    power and energy    powercap package-0
-- memory per rank -------------------------------------------------------------
  class                            least     largest  of rank
  parameters                   474.8 MiB   474.8 MiB        0
  activations                  858.3 MiB   858.3 MiB        1
  peak                        2288.8 MiB  2384.2 MiB        0
  workspace (sum over ranks)              0.0039 MiB
-- offloaded data moved per rank, all steps ------------------------------------
  transfer     least   largest  of rank
  load      4.00 KiB  8.00 KiB        1
  store     1.00 KiB  2.00 KiB        0
-- time of the slowest rank, 1 -------------------------------------------------
  region     per step   share
  forward      6.00 s  18.8 %
  optimizer    0.60 s   1.9 %
-- communication of the steps after the warm-up, largest over ranks ------------
  axis   operation   calls  payload  time (s)  exposed (s)
  data   all_reduce      4    101 B     0.500        0.125
  world  barrier         9      0 B    0.0020       0.0020
-- verification ----------------------------------------------------------------
  check                   value  threshold
  loss_against_reference  1e-07      1e-05  PASSED
  replicas_identical          3          0  FAILED
  not verified          dropout, cross_entropy
)");
}

TEST(Show, AResumedRunBeginsWithItsFirstStep) {
  Record r = made_record();
  r.summary.resumed.steps = 9;
  const std::string page = show_page("result.h5", r);
  EXPECT_NE(page.find("  loss                  10.9800 at step 10, 9.7500"), std::string::npos);
  EXPECT_NE(page.find("  loss scale            65536 at step 10, 32768"), std::string::npos);
}

// A run that began with weights of another (run.init_from) continues none.
TEST(Show, WeightsAloneAreNotResumed) {
  Record r = made_record();
  r.summary.resumed = {};
  r.summary.resumed.load_s = 1.5;
  const std::string page = show_page("result.h5", r);
  EXPECT_TRUE(has(page, "  weights loaded in     1.50 s\n")) << page;
  EXPECT_FALSE(has(page, "time to resume")) << page;
}

// 56 columns are left beside the names; words are not cut unless one is longer.
TEST(Show, LongValuesAreBrokenAtBlanks) {
  Record r = made_record();
  r.outcome.reason = std::string(40, 'a') + " " + std::string(30, 'b') + " " +
                     std::string(30, 'c') + " " + std::string(60, 'd');
  const std::string page = show_page("f", r), margin(24, ' ');
  EXPECT_NE(page.find("reason                " + std::string(40, 'a') + "\n" + margin +
                      std::string(30, 'b') + "\n" + margin + std::string(30, 'c') + "\n" + margin +
                      std::string(56, 'd') + "\n" + margin + "dddd\n"),
            std::string::npos)
      << page;
}

TEST(Show, SensorsWithLongNamesAndClocksThatAreUnknown) {
  Record r = made_record();
  r.summary.device.clock_ghz = 2.5;
  r.summary.host.clock_ghz = 0.0;
  r.summary.sensors_note = std::string(21, 'n') + ": read once";
  const std::string page = show_page("f", r);
  EXPECT_FALSE(has(page, "clock of the host"));
  EXPECT_TRUE(has(page, "\n    " + std::string(21, 'n') + " read once\n")) << page;
}

// A ceiling that varied gives no MFU, which is not 0 %.
TEST(Show, WhyThereIsNoMfu) {
  Record r = made_record();
  r.summary.flops.mfu = r.summary.flops.hfu = 0.0;
  EXPECT_TRUE(has(show_page("f", r), "\n  utilisation           no MFU: no peak is known\n"));
  r.summary.peak.note = "the measured GEMM ceiling varies by 8.1 %, more than 3 %";
  const std::string page = show_page("f", r);
  EXPECT_TRUE(has(page, "utilisation           no MFU: the measured GEMM ceiling varies by 8.1 %,"))
      << page;
  EXPECT_FALSE(has(page, "0.00 %")) << page;
}

TEST(Show, RatesOfFastRuns) {
  Record r = made_record();
  r.summary.rate.sec_per_it = 0.014912;
  r.summary.rate.sec_per_it_min = 0.0009;
  r.summary.rate.sec_per_it_max = 1.1;
  EXPECT_TRUE(has(show_page("f", r), "14.91 ms (median; 0.90 ms to 1100.00 ms in 3 steps)\n"))
      << show_page("f", r);
  r.summary.rate.samples_per_s = 123.456;
  EXPECT_TRUE(has(show_page("f", r), "per device, 123.46 sequences/s\n"));
}

TEST(Show, TheFigureOfMeritOfAClass) {
  Record r = made_record();
  EXPECT_FALSE(has(show_page("f", r), "figure of merit"));
  r.summary.rules.outcome = "met";
  EXPECT_TRUE(
      has(show_page("f", r), "\n  figure of merit       0.2060 TFLOP/s in total (causal)\n"));
}

// As a file of another program may be.
TEST(Show, ARunWithoutKeys) {
  Record r = made_record();
  r.config.clear();
  const std::string page = show_page("f", r);
  EXPECT_TRUE(has(page, "0 layers, hidden size 0, 0 heads, sequence 0")) << page;
}

TEST(Show, ARunWithoutASingleStep) {
  Record r;
  r.outcome.status = "OOM";
  r.outcome.reason =
      "node n1: parameters need 40.0 GiB, 12.0 GiB are left; a smaller model or more ranks";
  const std::string page = show_page("x.h5", r);
  EXPECT_TRUE(has(page, "no step was timed"));
  EXPECT_FALSE(has(page, "-- sensors")) << page;
  EXPECT_TRUE(has(page, "OOM"));
}

TEST(Show, MessagesWithoutTimes) {
  Record r = made_record();
  r.comm.resize(1);
  r.comm[0].exposed_s.clear();
  const std::string page = show_page("f", r);
  EXPECT_TRUE(has(page, "0.500            -\n")) << page;
  EXPECT_TRUE(has(page, "-- time of the slowest rank, "));
  r.projection.machine = "h100";
  r.projection.sec_per_it_low = 16.0;
  r.projection.sec_per_it_high = 64.0;
  EXPECT_TRUE(has(show_page("f", r), "  32.00 s (80 % band 16.00 s to 64.00 s)\n"))
      << show_page("f", r);
  r.timing[0].name = "communication";
  r.timing[1].name = "straggler";
  EXPECT_TRUE(has(show_page("f", r),
                  "\n  communication        6.00 s  18.8 %\n"
                  "    of it straggler    0.60 s   1.9 %\n"))
      << show_page("f", r);
  r.memory = {{"peak", "", {4096}, false}};
  EXPECT_TRUE(has(show_page("f", r), "-- memory of the device with the highest need ----"));
  EXPECT_TRUE(has(show_page("f", r), "  peak   4.00 KiB  4.00 KiB\n")) << show_page("f", r);
  EXPECT_TRUE(has(show_page("f", r), "-- time of the stage that computes longest ----"));
}

// Beyond 1,024 ranks a record has maxima of times and sums of messages.
TEST(Show, ReducedFiguresSayWhatTheyAre) {
  Record r = made_record();
  r.outcome.status = "FAILED";
  r.timing = {{"forward", "s", "", {1, 2, 3, 40, 4, 5, 6, 50}, 2, 4, true}};
  r.memory = {{"workspace", "", {4096}, true}};
  r.comm = {{"data", "all_reduce", {5 << 20}, {7000}, {1}, {2.5}, {1.25}, true}};
  const std::string page = show_page("x.h5", r);
  EXPECT_TRUE(has(page, "  ended at step         3\n")) << page;
  EXPECT_TRUE(has(page, "-- time, maximum over ranks ----"));
  EXPECT_TRUE(has(page, "  forward    6.00 s  18.8 %\n")) << page;
  EXPECT_TRUE(has(page, "-- communication of the steps after the warm-up, sum over ranks ----"));
  EXPECT_TRUE(has(page, "  data  all_reduce  7,000  5.0 MiB     2.500        1.250\n")) << page;
  const std::string compared = compare_groups({{{"a.h5", r, {}}}, {{"b.h5", r, {}}}}, 1.5);
  EXPECT_TRUE(has(compared, "\n  forward (s)             6.0000  6.0000  1.000")) << compared;
}

TEST(Regions, TheSlowestRankByMeansOfTimedSteps) {
  Record r = made_record();  // warm-up 1; forward of rank 1: 2 | 4 6 8
  const Breakdown slowest = slowest_rank(r);
  EXPECT_EQ(slowest.rank, 1);
  ASSERT_EQ(slowest.regions.size(), 2u);
  EXPECT_EQ(slowest.regions[0].time_s, 6.0);
  EXPECT_EQ(slowest_rank(Record{}).regions.size(), 0u);
  r.steps.skipped = {0, 0, 0, 1};
  EXPECT_EQ(slowest_rank(r).regions[0].time_s, 5.0);
}

// Another part is disturbed in each step: medians would say 9 of 10 s.
TEST(Regions, PartsOfAStepAddUpToIt) {
  Record r = made_record();
  r.steps.warmup_steps = 0;
  r.steps.skipped.clear();
  r.timing = {{"step", "s", "", {10, 11, 12}, 3, 1, false},
              {"forward", "s", "", {4, 6, 4}, 3, 1, false},
              {"backward", "s", "", {6, 5, 8}, 3, 1, false}};
  const Breakdown parts = slowest_rank(r);
  EXPECT_EQ(parts.step_s, 11.0);
  EXPECT_NEAR(parts.regions[1].time_s + parts.regions[2].time_s, 11.0, 1e-12);
  EXPECT_TRUE(has(show_page("f", r), "  step       11.00 s  100.0 %\n")) << show_page("f", r);
}

TEST(Regions, OfReducedSeriesTheMaximum) {
  Record r;
  r.timing = {{"forward", "s", "", {1, 2, 3, 40}, 1, 4, true}};
  const Breakdown slowest = slowest_rank(r);
  EXPECT_EQ(slowest.rank, -1);
  EXPECT_EQ(slowest.regions.at(0).time_s, 3.0);
}

}  // namespace
}  // namespace gptbench
