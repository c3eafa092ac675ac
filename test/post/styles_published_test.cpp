// Styles of published tables, against rows that are worked by hand; reference_test.cpp has the
// published rows.
#include <gtest/gtest.h>

#include <cstdlib>

#include "made_record.h"
#include "post/style.h"
#include "style_records.h"

namespace gptbench {
namespace {

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
  oom.outcome.ended_in_step = 4;
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

// One node of eight devices is shown; MiB by rank.
TEST(Zero, EveryColumn) {
  const Record r = uneven_record();
  EXPECT_EQ(
      zero_tables({RunView(r)}).at(0).rows.at(0),
      (std::vector<std::string>{"GPT-1.2M", "3",    "320",  "5",      "60",   "2",    "2",
                                "2",        "Yes",  "22",   "2500.0", "8.80", "1MiB", "2MiB",
                                "3MiB",     "4MiB", "5MiB", "6MiB",   "7MiB", "8MiB", "03-09"}));
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

}  // namespace
}  // namespace gptbench
