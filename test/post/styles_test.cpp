// Each style against rows that are worked by hand; reference_test.cpp has the published rows.
#include <gtest/gtest.h>

#include <cstdlib>

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

TEST(Fugaku, PublishedRowInAllFormats) {
  const Record row = fugaku_record({1, 2.0, 1, 7718.0, 1489.7});
  const std::vector<Table> tables = fugaku_tables({RunView(row)});
  EXPECT_EQ(format_csv(tables),
            "Nodes,Size,DP,TP,PP,MBS,GBS,Mem,Sec/it,TFLOPs,Est. Aggr. PetaFLOPs,Notes\n"
            "1 (2.0Hz),124M,1,1,1,1,1024,7718.0 MiB,1489.7,0.56,0.0005,02-15\n");
  EXPECT_EQ(
      format_markdown(tables),
      "Sequence length 1024, activation checkpointing False\n\n"
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
            "Sequence length 1024, activation checkpointing True (* recomputation counted)");
  EXPECT_EQ(tables[2].caption, "Sequence length 2048, activation checkpointing False");
}

TEST(Fugaku, OutcomesStandInPlaceOfFigures) {
  Record oom = fugaku_record({64, 2.0, 4, 30000.0, 0.0});
  oom.status = "OOM";
  oom.verdict = "";
  oom.failed_step = 3;
  oom.reason = "activations need 31 GiB";
  Record invalid = fugaku_record({1, 2.0, 1, 0.0, 1489.7});
  invalid.status = invalid.verdict = "INVALID";
  Record quick = fugaku_record({1, 2.0, 1, 0.0, 0.0});
  const Table table = fugaku_tables({RunView(oom), RunView(invalid), RunView(quick)}).at(0);
  EXPECT_EQ(cell(table, 0, "Mem"), "30000.0 MiB");
  for (const char* heading : {"Sec/it", "TFLOPs", "Est. Aggr. PetaFLOPs"}) {
    EXPECT_EQ(cell(table, 0, heading), "OOM");
    EXPECT_EQ(cell(table, 1, heading), "INVALID");
    EXPECT_EQ(cell(table, 2, heading), "-");
  }
  EXPECT_EQ(cell(table, 1, "Mem"), "INVALID");
  EXPECT_EQ(cell(table, 0, "Notes"), "02-15; OOM at step 4: activations need 31 GiB");
}

// A row of the published table: 7b, 8 A100 80 GB, T = 2048, 37130 tokens/s. N = 6658859008.
Record mpt_record() {
  Record r = made_record();
  r.reason.clear();
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
  s.device_name = "a100_80gb";
  s.peak_tflops = 312.0;
  s.tokens_per_s = 37130.0;
  s.samples_per_s = 37130.0 / 2048;
  s.sec_per_it = 96.0 * 2048 / 37130.0;
  s.flops_per_step["mpt"] = 96.0 * 2048 * (6.0 * 6658859008.0 + 12.0 * 32 * 4096 * 2048);
  s.hardware_factor = 1.0;
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
  r.summary.hardware_factor = 4.0 / 3.0;
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
  r.summary.flops_per_step["exact"] = r.summary.flops_per_step["mpt"];
  r.summary.flops_per_step["exact_recomputed"] = 0.25 * r.summary.flops_per_step["mpt"];
  const Table exact = mpt_tables({RunView(r, {"exact", 0.0, ""})}).at(0);
  EXPECT_NEAR(std::atof(cell(exact, 0, "HFU").c_str()), 64.23 * 1.25, 0.03);
  const Table halved = mpt_tables({RunView(r, {"", 624.0, ""})}).at(0);
  EXPECT_NEAR(std::atof(cell(halved, 0, "MFU").c_str()), 64.23 / 2, 0.01);
  r.summary.flops_per_step["causal"] = 0.5 * r.summary.flops_per_step["mpt"];
  const Table causal = mpt_tables({RunView(r, {"causal", 0.0, ""})}).at(0);
  EXPECT_NEAR(std::atof(cell(causal, 0, "MFU").c_str()), 64.23 / 2, 0.01);
}

TEST(Zero, MemoryOfEachDeviceAndRunsThatNeverStarted) {
  Record r = made_record();
  r.reason.clear();
  set_key(r, "model", "preset", std::string("gpt-345m"));
  set_key(r, "parallel", "zero_stage", int64_t{2});
  set_key(r, "parallel", "offload", std::string("optimizer"));
  r.summary.device_memory_bytes = 40537.0 * 1048576;
  for (MemoryEntry& entry : r.memory)
    if (entry.name == "peak") entry.bytes = {int64_t{30760} << 20, int64_t{31192} << 20};
  r.summary.sec_per_it = 1.658238935;
  r.summary.samples_per_s = 256 / 1.658238935;
  Record never = r;
  never.status = "OOM";
  never.loss.clear();
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
  eight.status = "OOM";
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

TEST(Scaling, SpeedUpAndEfficiencyFromTheFewestRanks) {
  Record two = made_record(), four = made_record();
  four.summary.world_size = 4;
  set_key(four, "parallel", "data_parallel", int64_t{4});
  four.summary.tokens_per_s = 1.8 * two.summary.tokens_per_s;
  Record failed = two;
  failed.summary.world_size = 1;
  failed.status = "FAILED";
  const Table table = scaling_tables({RunView(four), RunView(two), RunView(failed)}).at(0);
  EXPECT_EQ(cell(table, 0, "Speed-up"), "FAILED");
  EXPECT_EQ(cell(table, 1, "Speed-up"), "1.00");
  EXPECT_EQ(cell(table, 2, "Ranks"), "4");
  EXPECT_EQ(cell(table, 2, "Speed-up"), "1.80");
  EXPECT_EQ(cell(table, 2, "Efficiency"), "90.0 %");
  EXPECT_EQ(cell(table, 0, "Comm"), "FAILED");
}

// 2 s of 8 s; four ranks of 250 TFLOP/s are a PetaFLOP/s.
TEST(Scaling, CommunicationShareAndAggregate) {
  Record four = made_record();
  four.summary.world_size = 4;
  four.summary.flops_convention = "exact";
  four.summary.sec_per_it = 2.0;
  four.summary.flops_per_step = {{"exact", 2e15}};
  four.warmup_steps = 0;
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

// A record of another program version may lack anything.
TEST(Styles, AnEmptyRecordHasRowsInEveryStyle) {
  const Record empty;
  for (const Style& style : styles) {
    const std::vector<Table> tables = style.tables({RunView(empty)});
    ASSERT_EQ(tables.size(), 1u) << style.name;
    EXPECT_EQ(tables[0].rows.size(), 1u) << style.name;
    EXPECT_EQ(tables[0].rows[0].size(), tables[0].columns.size()) << style.name;
  }
}

}  // namespace
}  // namespace gptbench
