// Each style against rows that are worked by hand; reference_test.cpp has the published rows.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <utility>

#include "made_record.h"
#include "post/style.h"

namespace gptbench {
namespace {

std::string cell(const Table& table, size_t row, const std::string& heading) {
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].heading == heading) return table.rows.at(row)[c];
  return "no column " + heading;
}

std::vector<std::string> headings(const Table& table) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) names.push_back(column.heading);
  return names;
}

// A run in which no two figures are the same and every rounding shows. 60 ranks on 4 nodes of 15:
// tensor 2, pipeline 5, context 3, so 60 / 30 = 2 replicas. Sequences at once: 4 * 2 = 8, of a
// batch of 22, so 2.75 micro-batches, rounded up to 3. 2.5 s a step: 22 / 2.5 = 8.8 sequences/s, 22
// * 512 = 11264 tokens per step, 4505.6 tokens/s. TFLOP/s per rank are FLOPs / (2.5 s * 60 ranks):
// mpt 0.2, with recomputation 4/3 of it, megatron 0.4 with recomputation (k = 4), causal 0.1.
Record uneven_record() {
  Record r = made_record();
  r.outcome.reason.clear();
  set_key(r, "model", "preset", std::string());
  set_key(r, "model", "num_layers", int64_t{3});
  set_key(r, "model", "hidden_size", int64_t{320});
  set_key(r, "model", "num_attention_heads", int64_t{5});
  set_key(r, "model", "seq_length", int64_t{512});
  set_key(r, "parallel", "data_parallel", int64_t{0});
  set_key(r, "parallel", "tensor_parallel", int64_t{2});
  set_key(r, "parallel", "pipeline_parallel", int64_t{5});
  set_key(r, "parallel", "context_parallel", int64_t{3});
  set_key(r, "parallel", "zero_stage", int64_t{2});
  set_key(r, "parallel", "offload", std::string("optimizer, activations"));
  set_key(r, "batch", "micro_batch_size", int64_t{4});
  set_key(r, "batch", "global_batch_size", int64_t{22});
  set_key(r, "precision", "compute", std::string("bf16"));
  set_key(r, "precision", "parameters", std::string("bf16"));
  set_key(r, "precision", "reduce", std::string("bf16"));
  set_key(r, "memory", "activation_checkpointing", std::string("full"));
  Summary& s = r.summary;
  s.num_params = 1234567;
  s.world_size = 60;
  s.nodes = 4;
  s.ranks_per_node = 15;
  s.rate.sec_per_it = 2.5;
  s.rate.samples_per_s = 8.8;
  s.rate.tokens_per_s = 4505.6;
  s.flops.per_step = {{"mpt", 3e13}, {"megatron", 6e13}, {"causal", 1.5e13}};
  s.flops.convention = "causal";
  s.flops.hardware_factor = 4.0 / 3.0;
  s.peak.tflops = 0.5;
  s.device.name = "a device";
  s.device.clock_ghz = 1.5;
  s.peak_memory_bytes = 7718.5 * 1048576;
  s.device.memory_bytes = 0.0;
  for (MemoryEntry& entry : r.memory)
    if (entry.name == "peak") {
      entry.bytes.clear();
      for (int64_t rank = 1; rank <= 60; ++rank) entry.bytes.push_back(rank << 20);
    }
  return r;
}

// 0.4 TFLOP/s * 60 / 1024 = 0.0234375, three digits with recomputation.
TEST(Fugaku, EveryColumn) {
  const Record r = uneven_record();
  EXPECT_EQ(format_csv(fugaku_tables({RunView(r)})),
            "Nodes,Size,DP,TP,PP,MBS,GBS,Mem (MiB),Sec/it,TFLOPs*,Est. Aggr. PetaFLOPs,Notes,"
            "seq_length,activation_checkpointing,Clock (GHz),Status\n"
            "4,1.2M,2,2,5,4,22,2479.6,2.5,0.40,0.0234,03-09,512,True,1.5,OK\n");
  EXPECT_EQ(fugaku_tables({RunView(r)}).at(0).rows.at(0),
            (std::vector<std::string>{"4 (1.5Hz)", "1.2M", "2", "2", "5", "4", "22", "2479.6 MiB",
                                      "2.5", "0.40", "0.0234", "03-09"}));
}

// MFU 0.2 / 0.5, HFU 4/3 of it; Model TFLOP 0.2 / 100, without what is recomputed; 4505.6 / 60 =
// 75.09 tokens/s a rank. A master copy in fp32 makes the precision mixed.
TEST(Mpt, EveryColumn) {
  const Record r = uneven_record();
  EXPECT_EQ(mpt_tables({RunView(r)}).at(0).rows.at(0),
            (std::vector<std::string>{"1.2m",    "512",           "60",   "a device", "40.00",
                                      "53.33",   "0.002000",      "4",    "3",        "22",
                                      "8",       "4506",          "75",   "11264",    "amp_bf16",
                                      "DEFAULT", "SHARD_GRAD_OP", "True", "True",     "1234567"}));
}

// One node of eight devices is shown; MiB by rank.
TEST(Zero, EveryColumn) {
  const Record r = uneven_record();
  EXPECT_EQ(
      zero_tables({RunView(r)}).at(0).rows.at(0),
      (std::vector<std::string>{"GPT-1.2M", "3",    "320",  "5",      "60",   "2",    "2",
                                "2",        "Yes",  "22",   "2500.0", "8.80", "1MiB", "2MiB",
                                "3MiB",     "4MiB", "5MiB", "6MiB",   "7MiB", "8MiB", "03-09"}));
}

// 2.6e9 bytes as the device counts; the record's power and utilisation.
TEST(Megatron, EveryPartOfRowAndCell) {
  Record r = uneven_record();
  EXPECT_EQ(format_csv(megatron_tables({RunView(r)})),
            "model,nodes,gpus_per_node,mp,pp,zero_stage,offload,micro_batch_size,grad_accum,"
            "samples_per_s,tflops_per_gpu,memory_used_gb,memory_total_gb,power_w,power_limit_w,"
            "utilisation_pct,notes,Status\n"
            "GPT-1.2M,4,15,2,5,2,cpu,4,3,8.80,0.40,2.6,,65.5,120.0,97.0,,OK\n");
  const Table table = megatron_tables({RunView(r)}).at(0);
  EXPECT_EQ(headings(table), (std::vector<std::string>{"model \\ num_node * num_gpus", "4*15"}));
  EXPECT_EQ(table.rows.at(0),
            (std::vector<std::string>{
                "GPT-1.2M (mp=2, pp=5, grad accum=3, micro-batch=4, ZeRO 2 + offload)",
                "8.80 samples/sec\n0.40 tflops/gpu\n2.6 GB\n66/120 W\n97 %"}));
  // Without what the device counts, the high-water mark: 7718.5 MiB = 8.09e9 bytes.
  r.summary.device.memory_used_bytes = 0.0;
  r.summary.device.power_limit_w = r.summary.device.utilisation = std::nullopt;
  EXPECT_EQ(megatron_tables({RunView(r)}).at(0).rows.at(0).at(1),
            "8.80 samples/sec\n0.40 tflops/gpu\n8.1 GB\n66 W");
}

// A cell shows the fastest run that counts, wherever it stands; nodes * devices are in
// ascending order of devices, then of nodes.
TEST(Megatron, TheFastestRunOfACell) {
  Record slow = made_record(), fast = made_record(), failed = made_record();
  slow.summary.rate.samples_per_s = 1.0;
  fast.summary.rate.samples_per_s = 3.0;
  failed.summary.rate.samples_per_s = 9.0;
  failed.outcome.status = "FAILED";
  const RunView a(slow), b(fast), c(failed);
  for (const Runs& runs : {Runs{a, b, c}, Runs{c, b, a}, Runs{b, c, a}})
    EXPECT_EQ(megatron_tables(runs).at(0).rows.at(0).at(1).substr(0, 17), "3.00 samples/sec\n");
  EXPECT_EQ(megatron_tables({c}).at(0).rows.at(0).at(1), "FAILED");
  fast.summary.nodes = 2;
  fast.summary.ranks_per_node = 1;
  failed.summary.nodes = 1;
  failed.summary.ranks_per_node = 3;
  EXPECT_EQ(headings(megatron_tables({c, b, a}).at(0)),
            (std::vector<std::string>{"model \\ num_node * num_gpus", "1*2", "2*1", "1*3"}));
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

TEST(Fugaku, PublishedRowInAllFormats) {
  const Record row = fugaku_record({1, 2.0, 1, 7718.0, 1489.7});
  const std::vector<Table> tables = fugaku_tables({RunView(row)});
  EXPECT_EQ(format_csv(tables),
            "Nodes,Size,DP,TP,PP,MBS,GBS,Mem (MiB),Sec/it,TFLOPs,Est. Aggr. PetaFLOPs,Notes,"
            "seq_length,activation_checkpointing,Clock (GHz),Status\n"
            "1,124M,1,1,1,1,1024,7718.0,1489.7,0.56,0.0005,02-15,1024,"
            "False,2.0,OK\n");
  EXPECT_EQ(
      format_markdown(tables),
      "Sequence length 1024, activation checkpointing False. As published: TFLOPs per rank, "
      "PetaFLOPs = TFLOPs x ranks / 1024, Hz stands for GHz\n\n"
      "|     Nodes | Size |  DP |  TP |  PP | MBS |  GBS |        Mem | Sec/it | TFLOPs | Est. "
      "Aggr. PetaFLOPs | Notes |\n"
      "|----------:|-----:|----:|----:|----:|----:|-----:|-----------:|-------:|-------:|----"
      "-----------------:|-------|\n"
      "| 1 (2.0Hz) | 124M |   1 |   1 |   1 |   1 | 1024 | 7718.0 MiB | 1489.7 |   0.56 |       "
      "        0.0005 | 02-15 |\n");
  EXPECT_NE(format_latex(tables).find("1 (2.0Hz) & 124M & 1 & 1 & 1 & 1 & 1024 & 7718.0 MiB & "
                                      "1489.7 & 0.56 & 0.0005 & 02-15 \\\\\n"),
            std::string::npos);
}

TEST(Fugaku, OneTableForEachSequenceLengthAndSetting) {
  const Record a = fugaku_record({1, 0.0, 1, 100.0, 10.0});
  const Record b = fugaku_record({2, 0.0, 1, 100.0, 5.0, true});
  const Record c = fugaku_record({4, 0.0, 1, 100.0, 2.5});
  Record d = fugaku_record({1, 0.0, 1, 100.0, 20.0, false, "2024-02-15T08:00:00Z", 2048});
  const std::vector<Table> tables = fugaku_tables({RunView(a), RunView(b), RunView(c), RunView(d)});
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(cell(tables[0], 1, "Nodes"), "4");
  EXPECT_EQ(tables[1].caption,
            "Sequence length 1024, activation checkpointing True (* recomputation counted). As "
            "published: TFLOPs per rank, PetaFLOPs = TFLOPs x ranks / 1024");
  EXPECT_EQ(tables[2].caption.rfind("Sequence length 2048, activation checkpointing False. ", 0),
            0U);
}

TEST(Fugaku, OutcomesStandInPlaceOfFigures) {
  Record oom = fugaku_record({64, 2.0, 4, 30000.0, 0.0});
  oom.outcome.status = "OOM";
  oom.outcome.verdict = "";
  oom.outcome.failed_step = 3;
  oom.outcome.reason = "activations need 31 GiB";
  Record invalid = fugaku_record({1, 2.0, 1, 0.0, 1489.7});
  invalid.outcome.status = invalid.outcome.verdict = "INVALID";
  Record quick = fugaku_record({1, 2.0, 1, 0.0, 0.0});
  const Table table = fugaku_tables({RunView(oom), RunView(invalid), RunView(quick)}).at(0);
  EXPECT_EQ(cell(table, 0, "Mem"), "30000.0 MiB");
  for (const char* heading : {"Sec/it", "TFLOPs", "Est. Aggr. PetaFLOPs"}) {
    EXPECT_EQ(cell(table, 0, heading), "OOM");
    EXPECT_EQ(cell(table, 1, heading), "INVALID");
    EXPECT_EQ(cell(table, 2, heading), "-");
  }
  EXPECT_EQ(cell(table, 1, "Mem"), "INVALID");
  EXPECT_EQ(cell(table, 2, "Mem"), "-");
  EXPECT_EQ(cell(table, 0, "Notes"), "02-15; OOM at step 4: activations need 31 GiB");
  // For programs a figure that is not there is empty, and Status says why.
  EXPECT_EQ(cell(for_programs(table), 0, "Sec/it"), "");
  EXPECT_EQ(cell(for_programs(table), 0, "Mem (MiB)"), "30000.0");
  EXPECT_EQ(cell(for_programs(table), 0, "Status"), "OOM");
  EXPECT_EQ(cell(for_programs(table), 2, "Sec/it"), "");
  EXPECT_EQ(cell(for_programs(table), 2, "Status"), "OK");
}

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

// A row of the published table: 7b, 8 A100 80 GB, T = 2048, 37130 tokens/s. N = 6658859008.
Record mpt_record() {
  Record r = made_record();
  r.outcome.reason.clear();
  set_key(r, "model", "preset", std::string("mpt-7b"));
  set_key(r, "model", "seq_length", int64_t{2048});
  set_key(r, "parallel", "data_parallel", int64_t{8});
  set_key(r, "parallel", "zero_stage", int64_t{3});
  set_key(r, "batch", "micro_batch_size", int64_t{6});
  set_key(r, "batch", "global_batch_size", int64_t{96});
  set_key(r, "precision", "compute", std::string("bf16"));
  set_key(r, "precision", "parameters", std::string("bf16"));
  Summary& s = r.summary;
  s.num_params = 6658859008;
  s.world_size = 8;
  s.nodes = 1;
  s.device.name = "a100_80gb";
  s.peak.tflops = 312.0;
  s.rate.tokens_per_s = 37130.0;
  s.rate.samples_per_s = 37130.0 / 2048;
  s.rate.sec_per_it = 96.0 * 2048 / 37130.0;
  s.flops.per_step["mpt"] = 96.0 * 2048 * (6.0 * 6658859008.0 + 12.0 * 32 * 4096 * 2048);
  s.flops.hardware_factor = 1.0;
  return r;
}

TEST(Mpt, PublishedRow) {
  const Record r = mpt_record();
  const Table table = mpt_tables({RunView(r)}).at(0);
  EXPECT_EQ(headings(table), (std::vector<std::string>{"Model",
                                                       "SeqLen (T)",
                                                       "# GPUs",
                                                       "GPU",
                                                       "MFU",
                                                       "HFU",
                                                       "Model TFLOP",
                                                       "MicroBatchSize",
                                                       "GradAccum",
                                                       "GlobalBatchSize",
                                                       "Throughput (S/s)",
                                                       "Throughput (T/s)",
                                                       "Throughput (T/s/GPU)",
                                                       "GlobalBatchSize (T)",
                                                       "Precision",
                                                       "MP Mode",
                                                       "Sharding Strategy",
                                                       "Activation Checkpointing",
                                                       "Activation CPUOffload",
                                                       "NumParams"}));
  // Published: 64.23, 2.003836; the printed throughput has five digits.
  EXPECT_NEAR(std::atof(cell(table, 0, "MFU").c_str()), 64.23, 0.02);
  EXPECT_NEAR(std::atof(cell(table, 0, "HFU").c_str()), 64.23, 0.02);
  EXPECT_NEAR(std::atof(cell(table, 0, "Model TFLOP").c_str()), 2.003836, 5e-4);
  const std::vector<std::string> row = table.rows[0];
  const std::vector<std::string> rest(row.begin() + 7, row.end());
  EXPECT_EQ(rest,
            (std::vector<std::string>{"6", "2", "96", "18", "37130", "4641", "196608", "amp_bf16",
                                      "DEFAULT", "FULL_SHARD", "False", "False", "6658859008"}));
  EXPECT_EQ(row[0], "7b");
  EXPECT_EQ(row[3], "a100_80gb");
}

TEST(Mpt, RecomputationPureTypesAndRestatement) {
  Record r = mpt_record();
  r.summary.flops.hardware_factor = 4.0 / 3.0;
  set_key(r, "memory", "activation_checkpointing", std::string("full"));
  set_key(r, "precision", "reduce", std::string("bf16"));
  set_key(r, "precision", "master_weights", false);
  set_key(r, "parallel", "offload", std::string("optimizer, activations"));
  const Table table = mpt_tables({RunView(r)}).at(0);
  EXPECT_NEAR(std::atof(cell(table, 0, "HFU").c_str()), 64.23 * 4 / 3, 0.03);
  EXPECT_EQ(cell(table, 0, "Precision"), "bf16");
  EXPECT_EQ(cell(table, 0, "MP Mode"), "PURE");
  EXPECT_EQ(cell(table, 0, "Activation Checkpointing"), "True");
  EXPECT_EQ(cell(table, 0, "Activation CPUOffload"), "True");
  // Recomputation that is counted by operations is a figure of its own, on top of the model's.
  r.summary.flops.per_step["exact"] = r.summary.flops.per_step["mpt"];
  r.summary.flops.per_step["exact_recomputed"] = 0.25 * r.summary.flops.per_step["mpt"];
  const Table exact = mpt_tables({RunView(r, {"exact", 0.0, ""})}).at(0);
  EXPECT_NEAR(std::atof(cell(exact, 0, "HFU").c_str()), 64.23 * 1.25, 0.03);
  const Table halved = mpt_tables({RunView(r, {"", 624.0, ""})}).at(0);
  EXPECT_NEAR(std::atof(cell(halved, 0, "MFU").c_str()), 64.23 / 2, 0.01);
  r.summary.flops.per_step["causal"] = 0.5 * r.summary.flops.per_step["mpt"];
  const Table causal = mpt_tables({RunView(r, {"causal", 0.0, ""})}).at(0);
  EXPECT_NEAR(std::atof(cell(causal, 0, "MFU").c_str()), 64.23 / 2, 0.01);
}

// PURE: one type for GEMMs, parameters and reductions, which is not fp32, and no fp32 copy.
TEST(Mpt, PrecisionAndMode) {
  struct Case {
    const char *compute, *parameters, *reduce;
    bool master;
    const char *precision, *mode;
  };
  for (const Case& c : std::vector<Case>{{"bf16", "bf16", "bf16", false, "bf16", "PURE"},
                                         {"bf16", "auto", "bf16", false, "bf16", "PURE"},
                                         {"bf16", "bf16", "bf16", true, "amp_bf16", "DEFAULT"},
                                         {"bf16", "fp32", "bf16", false, "amp_bf16", "DEFAULT"},
                                         {"bf16", "bf16", "fp32", false, "amp_bf16", "DEFAULT"},
                                         {"fp32", "fp32", "fp32", false, "fp32", "DEFAULT"},
                                         {"fp64", "auto", "fp64", false, "fp64", "DEFAULT"},
                                         {"fp8", "bf16", "bf16", true, "amp_fp8", "DEFAULT"}}) {
    Record r = mpt_record();
    set_key(r, "precision", "compute", std::string(c.compute));
    set_key(r, "precision", "parameters", std::string(c.parameters));
    set_key(r, "precision", "reduce", std::string(c.reduce));
    set_key(r, "precision", "master_weights", c.master);
    const Table table = mpt_tables({RunView(r)}).at(0);
    EXPECT_EQ(cell(table, 0, "Precision"), c.precision);
    EXPECT_EQ(cell(table, 0, "MP Mode"), c.mode) << c.precision;
  }
}

TEST(Mpt, ShardingOffloadAndRatesBelowOne) {
  Record r = mpt_record();
  const char* const names[] = {"NO_SHARD", "ZeRO-1", "SHARD_GRAD_OP", "FULL_SHARD", "-"};
  for (int64_t stage = 0; stage < 5; ++stage) {
    set_key(r, "parallel", "zero_stage", stage);
    EXPECT_EQ(cell(mpt_tables({RunView(r)}).at(0), 0, "Sharding Strategy"), names[stage]);
  }
  set_key(r, "parallel", "offload", std::string("optimizer"));
  set_key(r, "memory", "activation_checkpointing", std::string("selective"));
  r.summary.rate.tokens_per_s = 2.25;
  r.summary.rate.samples_per_s = 0.0098765;
  const Table table = mpt_tables({RunView(r)}).at(0);
  EXPECT_EQ(cell(table, 0, "Activation CPUOffload"), "False");
  EXPECT_EQ(cell(table, 0, "Activation Checkpointing"), "selective");
  EXPECT_EQ(cell(table, 0, "Throughput (S/s)"), "0.00988");
  EXPECT_EQ(cell(table, 0, "Throughput (T/s)"), "2");
  EXPECT_EQ(cell(table, 0, "Throughput (T/s/GPU)"), "0.281");  // 2.25 / 8 = 0.28125
  r.outcome.status = "TIMEOUT";
  for (const char* heading : {"MFU", "HFU", "Model TFLOP", "Throughput (S/s)", "Throughput (T/s)"})
    EXPECT_EQ(cell(mpt_tables({RunView(r)}).at(0), 0, heading), "TIMEOUT");
}

// 500 TFLOP/s: 500 / 989.5 = 50.53 % of the bf16 peak of an H100, 500 / 1979 = 25.27 % of that of
// fp8.
TEST(Mpt, Fp8AgainstThePeaksOfBothTypes) {
  Record r = mpt_record();
  set_key(r, "precision", "compute", std::string("fp8"));
  r.summary.device.name = "h100_80gb";
  r.summary.world_size = 1;
  r.summary.rate.sec_per_it = 1.0;
  r.summary.flops.per_step = {{"mpt", 5e14}};
  EXPECT_EQ(cell(mpt_tables({RunView(r, {"", 0.0, "both"})}).at(0), 0, "MFU"),
            "50.53 bf16, 25.27 fp8");
  EXPECT_EQ(cell(mpt_tables({RunView(r, {"", 0.0, "fp8"})}).at(0), 0, "MFU"), "25.27");
  EXPECT_EQ(cell(mpt_tables({RunView(r, {"", 0.0, "bf16"})}).at(0), 0, "MFU"), "50.53");
  set_key(r, "precision", "compute", std::string("bf16"));  // against the recorded peak, 312
  EXPECT_EQ(cell(mpt_tables({RunView(r, {"", 0.0, "both"})}).at(0), 0, "MFU"), "160.26");
}

TEST(Zero, MemoryOfEachDeviceAndRunsThatNeverStarted) {
  Record r = made_record();
  r.outcome.reason.clear();
  set_key(r, "model", "preset", std::string("gpt-345m"));
  set_key(r, "parallel", "zero_stage", int64_t{2});
  set_key(r, "parallel", "offload", std::string("optimizer"));
  r.summary.device.memory_bytes = 40537.0 * 1048576;
  for (MemoryEntry& entry : r.memory)
    if (entry.name == "peak") entry.bytes = {int64_t{30760} << 20, int64_t{31192} << 20};
  r.summary.rate.sec_per_it = 1.658238935;
  r.summary.rate.samples_per_s = 256 / 1.658238935;
  Record never = r;
  never.outcome.status = "OOM";
  never.steps.loss.clear();
  const Table table = zero_tables({RunView(r), RunView(never)}).at(0);
  EXPECT_EQ(headings(table),
            (std::vector<std::string>{
                "Model", "num_layers", "hidden_size", "num_heads", "# gpus", "data parallel",
                "model parallel", "ZeRO Stage", "CPU Offload", "Max Global BSZ", "time/it (ms)",
                "Throughput (samples/sec)", "GPU0 Memory Usage", "GPU1 Memory Usage", "Notes"}));
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"GPT-345M", "12", "768", "12", "2", "2", "1", "2", "Yes", "8",
                                      "1658.2", "154.38", "30760MiB / 40537MiB",
                                      "31192MiB / 40537MiB", "03-09"}));
  // What the device itself counts goes before what the process occupies on the host.
  r.memory.push_back({"device_used", "", {int64_t{35000} << 20, int64_t{35001} << 20}, false});
  EXPECT_EQ(cell(zero_tables({RunView(r)}).at(0), 0, "GPU1 Memory Usage"), "35001MiB / 40537MiB");
  // Activations are not what the column is about.
  set_key(r, "parallel", "offload", std::string("activations"));
  EXPECT_EQ(cell(zero_tables({RunView(r)}).at(0), 0, "CPU Offload"), "No");
  EXPECT_EQ(cell(table, 1, "Max Global BSZ"), "Cannot even initialize model");
  EXPECT_EQ(cell(table, 1, "time/it (ms)"), "OOM");
}

TEST(Megatron, MatrixOverMachines) {
  Record one = made_record();
  set_key(one, "model", "preset", std::string("bert-345m"));
  Record eight = one;
  eight.summary.nodes = 4;
  eight.summary.ranks_per_node = 8;
  eight.summary.world_size = 32;
  set_key(eight, "parallel", "data_parallel", int64_t{32});
  set_key(eight, "batch", "global_batch_size", int64_t{128});
  eight.outcome.status = "OOM";
  Record other = one;
  set_key(other, "parallel", "zero_stage", int64_t{3});
  set_key(other, "parallel", "offload", std::string("optimizer"));
  const Table table = megatron_tables({RunView(eight), RunView(one), RunView(other)}).at(0);
  EXPECT_EQ(headings(table),
            (std::vector<std::string>{"model \\ num_node * num_gpus", "1*2", "4*8"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][0], "BERT-345M (mp=1, grad accum=4, micro-batch=1, ZeRO 0)");
  EXPECT_EQ(table.rows[0][1], "0.250 samples/sec\n0.11 tflops/gpu\n2.6/12.0 GB\n66/120 W\n97 %");
  EXPECT_EQ(table.rows[0][2], "OOM");
  EXPECT_EQ(table.rows[1][0], "BERT-345M (mp=1, grad accum=4, micro-batch=1, ZeRO 3 + offload)");
  EXPECT_EQ(table.rows[1][2], "");
}

// What would mislead beside other tables: units, cut figures, misprints, names.
TEST(Styles, CaptionsExplainWhatPublishedTablesDoDifferently) {
  const Record mpt = mpt_record(), fugaku = fugaku_record({1, 2.0, 1, 7718.0, 1489.7});
  const auto explains = [](const Table& table, const char* what) {
    return table.caption.find(what) != std::string::npos;
  };
  for (const char* const what : {"units of 1e14 FLOP/s", "cut to whole sequences"})
    EXPECT_TRUE(explains(mpt_tables({RunView(mpt)}).at(0), what)) << what;
  for (const char* const what : {"Hz stands for GHz", "x ranks / 1024"})
    EXPECT_TRUE(explains(fugaku_tables({RunView(fugaku)}).at(0), what)) << what;
  EXPECT_TRUE(explains(zero_tables({RunView(mpt)}).at(0), "only where a search found it"));
  EXPECT_TRUE(explains(megatron_tables({RunView(mpt)}).at(0), "mp: tensor parallel"));
}

TEST(Styles, ValuesOfKeys) {
  Record r = made_record();
  set_key(r, "run", "text", std::string("words"));
  set_key(r, "run", "on", true);
  set_key(r, "run", "off", false);
  set_key(r, "run", "count", int64_t{12});
  set_key(r, "run", "real", 0.5);
  const RunView run(r);
  std::string cells;
  for (const char* const key : {"text", "on", "off", "count", "real", "missing"})
    cells += key_cell(run, "run", key) + " ";
  EXPECT_EQ(cells, "words true false 12 0.5 - ");
}

// Warm-up 1 and three timed steps in made_record; the step skipped in the warm-up is not noted.
TEST(Styles, NoteSkippedSteps) {
  const std::string note = "2 of 5 steps skipped, not timed";
  Record r = made_record();
  EXPECT_EQ(RunView(r).skipped_note(), "");
  EXPECT_EQ(cell(mpt_tables({RunView(r)}).at(0), 0, "Notes"), "no column Notes");
  r.steps.skipped = {1, 0, 1, 1};
  for (const Style& style : styles) {
    if (style.tables == comm_tables) continue;  // its rows are messages
    const std::string text = format_csv(style.tables({RunView(r)}));
    EXPECT_NE(text.find(note), std::string::npos) << style.name << "\n" << text;
  }
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

// Figures stand to the right, text to the left.
TEST(Styles, TextColumnsAreAlignedToTheLeft) {
  const Record r = uneven_record();
  const auto text_columns = [&](std::vector<Table> (*style)(const Runs&)) {
    std::string names;
    const Table table = style({RunView(r)}).at(0);
    for (const Column& column : table.columns)
      if (!column.right) names += (names.empty() ? "" : ", ") + column.heading;
    return names;
  };
  EXPECT_EQ(text_columns(native_tables), "Run, Layout, Verdict");
  EXPECT_EQ(text_columns(fugaku_tables), "Notes");
  EXPECT_EQ(text_columns(mpt_tables),
            "Model, GPU, Precision, MP Mode, Sharding Strategy, Activation Checkpointing, "
            "Activation CPUOffload");
  EXPECT_EQ(text_columns(zero_tables), "Model, CPU Offload, Notes");
  EXPECT_EQ(text_columns(megatron_tables), "model \\ num_node * num_gpus, 4*15");
  EXPECT_EQ(text_columns(scaling_tables), "Notes");
  Record other = r;
  other.summary.flops.convention = "mpt";
  const std::vector<Table> tables = native_tables({RunView(r), RunView(other)});
  for (const Column& column : tables.at(0).columns)
    EXPECT_FALSE(column.heading == "FLOPs" && column.right);
}

// A projected row says so in every style, beside a measured one and alone.
TEST(Styles, ProjectedRowsSaySo) {
  Record projected = made_record();
  projected.projection.machine = "h100";
  projected.outcome.verdict = "PROJECTED";
  const Record measured = made_record();
  for (const auto style : {native_tables, fugaku_tables, mpt_tables, zero_tables, scaling_tables}) {
    const std::vector<Table> both = style({RunView(projected), RunView(measured)});
    EXPECT_EQ(both.at(0).columns.at(0).heading, "Source");
    EXPECT_EQ(both.at(0).rows.at(0).at(0), "projected");
    if (style == scaling_tables)  // a series of its own
      EXPECT_EQ(both.at(1).columns.at(0).heading, "Ranks");
    else
      EXPECT_EQ(both.at(0).rows.at(1).at(0), "measured");
    const std::vector<Table> measured_alone = style({RunView(measured)});
    EXPECT_NE(measured_alone.at(0).columns.at(0).heading, "Source");
  }
  EXPECT_EQ(megatron_tables({RunView(projected)}).at(0).rows.at(0).at(0).rfind("projected: ", 0),
            0u);
  EXPECT_EQ(RunView(projected).source_mark(), "projected: ");
  const Table both = native_tables({RunView(projected), RunView(measured)}).at(0);
  EXPECT_EQ(cell(both, 0, "Spread (%)"), "-");  // of one step
  EXPECT_EQ(cell(both, 1, "Spread (%)"), "4.7");
  EXPECT_FALSE(RunView(projected).is_measured());
}

TEST(RunView, AModelWithoutAPresetIsNamedByFamilyAndSize) {
  Record r = made_record();
  set_key(r, "model", "preset", std::string(""));
  set_key(r, "model", "family", std::string("llama"));
  EXPECT_EQ(RunView(r).model_name(), "LLAMA-124M");
}

// A record of another program version may lack anything.
TEST(Styles, AnEmptyRecordHasRowsInEveryStyle) {
  const Record empty;
  for (const Style& style : styles) {
    if (style.tables == comm_tables) continue;  // its rows are messages
    const std::vector<Table> tables = style.tables({RunView(empty)});
    ASSERT_EQ(tables.size(), 1u) << style.name;
    EXPECT_EQ(tables[0].rows.size(), 1u) << style.name;
    EXPECT_EQ(tables[0].rows[0].size(), tables[0].columns.size()) << style.name;
  }
}

}  // namespace
}  // namespace gptbench
