// Our own styles, against rows that are worked by hand: native, scaling, comm, checkpoint.
#include <gtest/gtest.h>

#include <iterator>
#include <utility>

#include "made_record.h"
#include "post/style.h"
#include "style_records.h"

namespace gptbench {
namespace {

// One run: layout and ranks are columns, what else it was asked for is the caption. 0.1 TFLOP/s by
// causal on each of 60 ranks; steps of 2.4 to 2.7 s around 2.5 s spread by 12 %; 65.5 W per device.
TEST(Native, OneRun) {
  Record r = uneven_record();
  r.summary.rate.sec_per_it_min = 2.4;
  r.summary.rate.sec_per_it_max = 2.7;
  r.summary.device.power_w = 65.5;
  r.summary.device.energy_j_per_token = 0.25;
  const Table table = native_tables({RunView(r)}).at(0);
  EXPECT_EQ(
      table.caption,
      "Runs: Model GPT-1.2M, Sequence 512, Batch 22, Precision bf16, Recomputation full, "
      "Nodes 4, Device a device, FLOPs causal, Date 2024-03-09; peak 0.5 TFLOP/s (measured GEMM "
      "ceiling)");
  EXPECT_EQ(headings(table),
            (std::vector<std::string>{"Run", "Layout", "Ranks", "Time (s)", "Spread (%)",
                                      "Tokens/s", "TFLOP/s per device", "TFLOP/s total", "MFU (%)",
                                      "Memory (MiB)", "Tokens/J", "GFLOPS/W", "Held-out loss",
                                      "To target (s)", "Verdict"}));
  EXPECT_EQ(table.rows.at(0),
            (std::vector<std::string>{"made", "dp2 tp2 pp5 cp3 z2", "60", "2.500", "12.0", "4506",
                                      "0.100", "6.00", "20.0", "2479.6", "4.00", "1.53", "9.875",
                                      "71.5", "VALID"}));
}

TEST(Native, FiguresThatNoRunHasAreNoColumns) {
  Record r = uneven_record();
  r.summary.device.power_w = r.summary.device.energy_j_per_token = std::nullopt;
  r.summary.convergence.held_out_loss = std::nullopt;
  r.summary.convergence.time_to_target_s = 0.0;
  EXPECT_EQ(headings(native_tables({RunView(r)}).at(0)),
            (std::vector<std::string>{"Run", "Layout", "Ranks", "Time (s)", "Spread (%)",
                                      "Tokens/s", "TFLOP/s per device", "TFLOP/s total", "MFU (%)",
                                      "Memory (MiB)", "Verdict"}));
}

TEST(Native, RulesThatARunFollowed) {
  Record r = uneven_record();
  r.summary.rules.outcome = "benchmark";
  EXPECT_EQ(cell(native_tables({RunView(r)}).at(0), 0, "Rules"), "benchmark");
}

// Runs that differ in ZeRO stage, micro-batch and weight decay, which follows from the stage.
TEST(Native, ColumnsAreWhatTheRunsDifferIn) {
  Record a = uneven_record(), b = uneven_record(), c = uneven_record();
  set_key(b, "parallel", "zero_stage", int64_t{3});
  set_key(c, "batch", "micro_batch_size", int64_t{2});
  set_key(b, "optimizer", "weight_decay", 0.5);
  c.outcome.status = "OOM";
  const Table table = native_tables({RunView(a), RunView(b), RunView(c)}).at(0);
  EXPECT_EQ(headings(table),
            (std::vector<std::string>{"Run", "Layout", "micro_batch_size", "Time (s)", "Spread (%)",
                                      "Tokens/s", "TFLOP/s per device", "TFLOP/s total", "MFU (%)",
                                      "Memory (MiB)", "Tokens/J", "GFLOPS/W", "Held-out loss",
                                      "To target (s)", "Verdict"}));
  EXPECT_EQ(cell(table, 1, "Layout"), "dp2 tp2 pp5 cp3 z3");
  EXPECT_EQ(cell(table, 2, "micro_batch_size"), "2");
  EXPECT_EQ(cell(table, 2, "Time (s)"), "OOM");
  EXPECT_EQ(cell(table, 2, "Verdict"), "OOM");
  EXPECT_EQ(cell(for_programs(table), 0, "Ranks"), "60");
}

// The base has 30 ranks and 2816 tokens/s: speed-up 4505.6 / 2816 = 1.6, of an ideal 2. TFLOP/s by
// the deck's convention: causal 0.1 a rank, 0.006 PetaFLOP/s; of the base 0.2 and 0.006. The
// slowest rank is 1 (mean of steps 7 s against 5 s, warm-up aside), of which 1.75 s are
// communication: 25 %.
TEST(Scaling, EveryColumn) {
  Record r = uneven_record(), base = uneven_record();
  base.summary.world_size = 30;
  base.summary.nodes = 2;
  base.summary.rate.tokens_per_s = 2816.0;
  base.timing.clear();
  r.steps.warmup_steps = 1;
  r.timing = {{"step", "s", "", {99, 1, 4, 5, 6, 9, 5, 7}, 4, 2, false},
              {"communication", "s", "", {1, 9, 3, 1.5, 3, 2.5, 3, 1.25}, 4, 2, false}};
  EXPECT_EQ(format_csv(scaling_tables({RunView(r), RunView(base)})),
            "Series,Model,Sequence,Precision,Recomputation,ZeRO,Device,Ranks,Nodes,DP,TP,PP,CP,MBS,"
            "GBS,Sec/it,Tokens/s,Tokens/s/rank,TFLOPs/rank,PetaFLOPs,Speed-up,Efficiency (%),"
            "Comm (%),Notes,Status\n"
            ",GPT-1.2M,512,bf16,full,2,a device,30,2,1,2,5,3,4,22,2.5,2816,93.86666666666666,0.2,"
            "0.006,1,100,,03-09,OK\n"
            ",GPT-1.2M,512,bf16,full,2,a device,60,4,2,2,5,3,4,22,2.5,4505.6,75.09333333333333,0.1,"
            "0.006,1.6,80,25,03-09,OK\n");
  EXPECT_EQ(scaling_tables({RunView(r)}).at(0).caption,
            "GPT-1.2M, sequence 512, bf16, tp2 pp5 cp3, ZeRO 2, full recomputation, micro-batch 4, "
            "a device; speed-up over the run on 60 ranks");
}

TEST(Scaling, SpeedUpAndEfficiencyFromTheFewestRanks) {
  Record two = made_record(), four = made_record();
  four.summary.world_size = 4;
  set_key(four, "parallel", "data_parallel", int64_t{4});
  four.summary.rate.tokens_per_s = 1.8 * two.summary.rate.tokens_per_s;
  Record failed = two;
  failed.summary.world_size = 1;
  failed.outcome.status = "FAILED";
  const Table table = scaling_tables({RunView(four), RunView(two), RunView(failed)}).at(0);
  EXPECT_EQ(cell(table, 0, "Speed-up"), "FAILED");
  EXPECT_EQ(cell(table, 1, "Speed-up"), "1.00");
  EXPECT_EQ(cell(table, 2, "Ranks"), "4");
  EXPECT_EQ(cell(table, 2, "Speed-up"), "1.80");
  EXPECT_EQ(cell(table, 2, "Efficiency"), "90.0 %");
  EXPECT_EQ(cell(table, 0, "Comm"), "FAILED");
}

// On one rank 100, 300 and 200 tokens/s in any order: their median is the base, and two ranks with
// 360 are 1.8 times as fast. A run with another micro-batch is a series of its own.
TEST(Scaling, TheBaseIsTheMedianOfLikeRuns) {
  std::vector<Record> records(5, made_record());
  const double rates[] = {100.0, 300.0, 200.0, 360.0, 900.0};
  for (size_t r = 0; r < records.size(); ++r) {
    const int64_t ranks = r < 3 ? 1 : 2;
    records[r].summary.world_size = ranks;
    records[r].summary.rate.tokens_per_s = rates[r];
    set_key(records[r], "parallel", "data_parallel", ranks);
  }
  set_key(records[4], "batch", "micro_batch_size", int64_t{4});
  Runs runs;
  for (const size_t r : {4, 1, 3, 0, 2}) runs.emplace_back(records[r]);
  const std::vector<Table> tables = scaling_tables(runs);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_NE(tables[0].caption.find("; micro-batch 4; speed-up over the run on 2 ranks"),
            std::string::npos)
      << tables[0].caption;
  EXPECT_EQ(cell(tables[0], 0, "Efficiency"), "100.0 %");
  EXPECT_NE(tables[1].caption.find("speed-up over the median of the 3 runs on 1 rank"),
            std::string::npos)
      << tables[1].caption;
  EXPECT_EQ(cell(tables[1], 0, "Speed-up"), "1.50");
  EXPECT_EQ(cell(tables[1], 3, "Speed-up"), "1.80");
  EXPECT_EQ(cell(tables[1], 3, "Efficiency"), "90.0 %");
  EXPECT_EQ(cell(for_programs(tables[1]), 3, "Series"), "micro-batch 1");
}

// 2 s of 8 s; four ranks of 250 TFLOP/s are a PetaFLOP/s.
TEST(Scaling, CommunicationShareAndAggregate) {
  Record four = made_record();
  four.summary.world_size = 4;
  four.summary.flops.convention = "exact";
  four.summary.rate.sec_per_it = 2.0;
  four.summary.flops.per_step = {{"exact", 2e15}};
  four.steps.warmup_steps = 0;
  four.steps.skipped.clear();
  four.timing = {{"step", "s", "", {8.0}, 1, 1, false},
                 {"communication", "s", "", {2.0}, 1, 1, false}};
  Table table = scaling_tables({RunView(four)}).at(0);
  EXPECT_EQ(cell(table, 0, "TFLOPs/rank"), "250.00");
  EXPECT_EQ(cell(table, 0, "PetaFLOPs"), "1.00");
  EXPECT_EQ(cell(table, 0, "Comm"), "25.0 %");
  four.timing.pop_back();
  table = scaling_tables({RunView(four)}).at(0);
  EXPECT_EQ(cell(table, 0, "Comm"), "-");
}

// A table for each run; for programs one, whose rows name theirs.
TEST(Comm, SeveralRunsAreOneTableForPrograms) {
  Record a = made_record(), b = made_record();
  b.summary.world_size = 4;
  const std::vector<Table> tables = comm_tables({RunView(a), RunView(b)});
  EXPECT_EQ(tables.size(), 2u);
  const std::string text = format_csv(tables);
  EXPECT_EQ(text.rfind("Run,Axis,Operation,", 0), 0u) << text;
  EXPECT_NE(text.find("\n\"made, 2 ranks\",data,all_reduce,4,2,8000000,"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\n\"made, 4 ranks\",data,all_reduce,4,2,8000000,"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("Axis", 5), std::string::npos) << text;
}

TEST(Comm, EveryColumn) {
  Record r = made_record();
  r.comm.pop_back();
  // Messages that a run planned but never sent, or that took no time, have no rate.
  r.comm.push_back({"tensor", "send", {0}, {0}, {0.0}, {1.0}, {0.0}, false});
  r.comm.push_back({"tensor", "send", {8}, {1}, {0.0}, {0.0}, {0.0}, false});
  const Table table = comm_tables({RunView(r)}).at(0);
  EXPECT_EQ(headings(table),
            (std::vector<std::string>{"Axis", "Operation", "Ranks", "Nodes", "Size (B)", "Count",
                                      "Type", "Redop", "Root", "Time (us)", "Algbw (GB/s)",
                                      "Busbw (GB/s)", "#wrong"}));
  Record damaged = r;
  damaged.calibration.messages[0].time_s = 0.0;
  EXPECT_EQ(cell(comm_tables({RunView(damaged)}).at(0), 0, "Algbw (GB/s)"), "0.000");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"data", "all_reduce", "4", "2", "8000000", "2000000", "f32",
                                      "sum", "-1", "4000.00", "2.000", "3.000", "0"}));
  EXPECT_EQ(table.rows[1], (std::vector<std::string>{"data", "send", "4", "2", "8", "2", "f32",
                                                     "none", "-1", "1.50", "0.005", "0.005", "3"}));
  EXPECT_EQ(cell(table, 2, "#wrong"), "-");
  EXPECT_EQ(cell(table, 2, "Size (B)"), "28");
  EXPECT_EQ(cell(table, 2, "Nodes"), "1");
  // Of two nodes it is known for messages between all ranks only.
  r.summary.nodes = 2;
  r.summary.ranks_per_node = 1;
  EXPECT_EQ(cell(comm_tables({RunView(r)}).at(0), 2, "Nodes"), "2");
  r.summary.world_size = 4;
  r.summary.ranks_per_node = 2;
  EXPECT_EQ(cell(comm_tables({RunView(r)}).at(0), 2, "Nodes"), "-");
  r.comm.clear();
  r.calibration = {};
  r.summary.world_size = 1;
  EXPECT_EQ(comm_tables({RunView(r)}).at(0).caption,
            "Messages of made, 1 rank: none, since it is a single rank");
  EXPECT_EQ(cell(table, 2, "Time (us)"), "107142.86");
}

// Groups of 60 ranks: tensor 2, pipeline 5, context 3, data 2.
TEST(Comm, RanksAreThoseOfAGroupAlongTheAxis) {
  const std::pair<const char*, const char*> groups[] = {
      {"tensor", "2"},  {"context", "3"}, {"pipeline", "5"},  {"data", "2"},  {"zero", "6"},
      {"replica", "1"}, {"model", "10"},  {"embedding", "2"}, {"world", "60"}};
  Record r = uneven_record();
  r.calibration = {};
  r.comm.clear();
  for (const auto& group : groups)
    r.comm.push_back({group.first, "all_gather", {8}, {1}, {0.0}, {1.0}, {0.0}, false});
  const Table table = comm_tables({RunView(r)}).at(0);
  ASSERT_EQ(table.rows.size(), std::size(groups));
  for (size_t row = 0; row < table.rows.size(); ++row) {
    EXPECT_EQ(cell(table, row, "Axis"), groups[row].first);
    EXPECT_EQ(cell(table, row, "Ranks"), groups[row].second) << groups[row].first;
  }
}

// Definitions of nccl-tests, GB/s: 8 MB in 4 ms are 2, the bus factor of an all-reduce of 4 ranks
// is 1.5. Of the run's own messages the mean over 3 + 4 calls: 201 / 7 B in 0.75 / 7 s.
// 5 GB in 2.5 s on two nodes; waits of 0.5 s and 1.5 s beside 96 s of timed steps and 32 s.
TEST(Checkpoint, EveryColumn) {
  Record r = made_record();
  r.outcome.reason.clear();
  r.summary.nodes = 2;
  set_key(r, "checkpoint", "async", true);
  set_key(r, "checkpoint", "every_steps", int64_t{2});
  r.steps.time_s = {32, 32, 32, 32};
  r.steps.checkpoint_s = {0, 0.5, 0, 1.5};
  const Table table = checkpoint_tables({RunView(r)}).at(0);
  EXPECT_EQ(headings(table), (std::vector<std::string>{
                                 "Run", "Ranks", "Nodes", "Async", "Every (steps)", "Every (s)",
                                 "Size (GB)", "Write (s)", "GB/s", "GB/s/node", "Wait (ms)",
                                 "Stall (ms/step)", "Overhead (%)", "Resume (s)", "Notes"}));
  EXPECT_EQ(table.rows.at(0), (std::vector<std::string>{"made, 2 ranks", "2", "2", "true", "2", "-",
                                                        "5.00", "2.50", "2.00", "1.00", "1000.00",
                                                        "500.00", "1.54", "1.50", "03-09"}));
  set_key(r, "checkpoint", "every_s", 0.7);
  set_key(r, "checkpoint", "every_steps", int64_t{0});
  EXPECT_EQ(cell(checkpoint_tables({RunView(r)}).at(0), 0, "Every (s)"), "0.7");
  EXPECT_EQ(cell(checkpoint_tables({RunView(r)}).at(0), 0, "Every (steps)"), "-");
  r.steps.checkpoint_s.clear();
  r.summary.checkpoint.bytes = 0;
  r.summary.checkpoint.write_s = 0.0;
  r.summary.resumed.from.clear();  // the time is that of weights alone
  const Table none = checkpoint_tables({RunView(r)}).at(0);
  for (const char* const heading :
       {"Size (GB)", "GB/s", "Wait (ms)", "Stall (ms/step)", "Overhead (%)", "Resume (s)"})
    EXPECT_EQ(cell(none, 0, heading), "-") << heading;
}

}  // namespace
}  // namespace gptbench
