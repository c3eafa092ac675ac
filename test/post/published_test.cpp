// Forms of published files, and what is none of them; test/post/reference_test.cpp has the rows.
#include "post/published.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "post/csv.h"
#include "post/style.h"

namespace gptbench {
namespace {

using Fields = std::vector<std::string>;

TEST(Csv, QuotesLineBreaksAndComments) {
  const std::vector<CsvRow> rows =
      parse_csv("x.csv", "# a comment\na, b ,c\r\n\n\"one, \"\"two\"\"\",\"line\nbreak\",\n,,3");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].fields, (Fields{"a", "b", "c"}));
  EXPECT_EQ(rows[1].fields, (Fields{"one, \"two\"", "line\nbreak", ""}));
  EXPECT_EQ(rows[2].fields, (Fields{"", "", "3"}));
  EXPECT_EQ(rows[0].line, 2u);
  EXPECT_EQ(rows[1].line, 4u);
  EXPECT_EQ(rows[2].line, 6u);
  EXPECT_THROW(parse_csv("x.csv", "a\n\"b\n"), Error);
}

// A first cell may begin with #; a row that is commented out is none.
TEST(Csv, CellsThatBeginWithAHashAreNoComments) {
  const std::vector<CsvRow> rows = parse_csv(
      "x.csv", "# GPUs,Model\n#VALUE!,7b\n #N/A ,7b\n#8,7b\n# gpus of a node, all\n#\n16,7b\n");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].fields, (Fields{"# GPUs", "Model"}));
  EXPECT_EQ(rows[1].fields, (Fields{"#VALUE!", "7b"}));
  EXPECT_EQ(rows[2].fields, (Fields{"#N/A", "7b"}));
  EXPECT_EQ(rows[3].fields, (Fields{"16", "7b"}));
  EXPECT_EQ(rows[3].line, 7u);
}

class PublishedRows : public ::testing::Test {
 protected:
  void TearDown() override { std::remove(path_); }
  std::vector<PublishedRun> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_published(path_);
  }
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return error.what();
    }
    return "accepted";
  }
  const char* path_ = "published_test.csv";
};

TEST_F(PublishedRows, PointsOfSeries) {
  const auto rows = read("freq, series ,ranks,tokens_per_s\r\n2.0,slow,512,100\n2.2,fast,1,7\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(RunView(rows[0].record).deck().text("run", "name"), "slow");
  EXPECT_EQ(rows[0].record.summary.world_size, 512);
  EXPECT_EQ(rows[0].record.summary.rate.tokens_per_s, 100.0);
  EXPECT_EQ(RunView(read("ranks,tokens_per_s\n1,2\n")[0].record).deck().text("run", "name"),
            "published");
}

// The headings of the table do as well as the names of columns, in any order; what the row does
// not say is not in the record.
TEST_F(PublishedRows, HeadingsAsPublished) {
  const auto rows = read(
      "NumParams,Model,SeqLen (T),# GPUs,Throughput (T/s),Precision,MP Mode,GlobalBatchSize,MFU\n"
      ",some-model,2048,16,1000,bf16,PURE,64,-\n");
  ASSERT_EQ(rows.size(), 1u);
  const RunView run(rows[0].record);
  EXPECT_EQ(run.deck().seq_length(), 2048);
  EXPECT_DOUBLE_EQ(run.summary().rate.tokens_per_s, 1000.0);
  EXPECT_DOUBLE_EQ(run.summary().rate.sec_per_it, 64.0 * 2048.0 / 1000.0);
  EXPECT_EQ(run.deck().text("precision", "reduce"), "bf16");
  EXPECT_FALSE(run.deck().logical("precision", "master_weights", true));
  EXPECT_EQ(run.deck().integer("batch", "micro_batch_size", -1), -1);
  EXPECT_EQ(run.rates().tflops("mpt"), 0.0);  // of no preset, so the shape is not known
  EXPECT_EQ(rows[0].cells.by_heading.at("MFU"), "-");
}

// What a row does not say is neither guessed nor a figure.
TEST_F(PublishedRows, EmptyCellsAndColumnsLeftOut) {
  const auto rows =
      read("model,seq_len,gpus,tokens_per_s,precision,global_batch_size\nown,,16,1000,bf16,64\n");
  EXPECT_EQ(rows.at(0).record.summary.rate.sec_per_it, 0.0);
  const auto points =
      read("size,seq_length,activation_checkpointing,nodes,dp,sec_per_it\n124M,1024,no,8,8,1.5\n");
  const RunView point(points.at(0).record);
  EXPECT_EQ(point.deck().integer("parallel", "tensor_parallel", 1), 1);
  EXPECT_EQ(point.deck().integer("parallel", "pipeline_parallel", 1), 1);
  EXPECT_EQ(point.deck().text("output", "flops_convention"), "megatron");
}

TEST_F(PublishedRows, ShardingAndOffloadOfMptRows) {
  const auto rows = read(
      "model,seq_len,gpus,tokens_per_s,precision,sharding,activation_cpu_offload,"
      "activation_checkpointing\n"
      "7b,2048,16,1000,amp_bf16,FULL_SHARD,True,False\n"
      "7b,2048,16,1000,amp_bf16,SHARD_GRAD_OP,False,True\n"
      "7b,2048,16,1000,amp_bf16,NO_SHARD,False,False\n");
  ASSERT_EQ(rows.size(), 3u);
  const RunView a(rows[0].record), b(rows[1].record), c(rows[2].record);
  EXPECT_EQ(a.deck().zero_stage(), 3);
  EXPECT_EQ(b.deck().zero_stage(), 2);
  EXPECT_EQ(c.deck().zero_stage(), 0);
  EXPECT_EQ(a.deck().text("parallel", "offload"), "activations");
  EXPECT_FALSE(b.deck().offloads());
  EXPECT_FALSE(a.deck().full_checkpointing());
  EXPECT_TRUE(b.deck().full_checkpointing());
  EXPECT_EQ(a.deck().preset(), "mpt-7b");
}

// A rate that a row states needs no batch.
TEST_F(PublishedRows, RateWithoutABatch) {
  const auto rows = read("model,seq_len,gpus,tokens_per_s,precision\n7b,2048,8,37130,amp_bf16\n");
  EXPECT_DOUBLE_EQ(rows.at(0).record.summary.rate.tokens_per_s, 37130.0);
}

// Cells of the matrix, as a list and as published; a cell that was not run is no row.
constexpr const char* matrix =
    "model \\ num_node * num_gpus,1*8,4*8,16*8\n"
    "\"BERT-345M (mp=8, grad accum=2, micro-batch=4, ZeRO 3 + offload)\","
    "\"84.17 samples/sec\n25.3 tflops/gpu\n30.4/40.5 GB\n310/400 W\n97 %\",OOM,\n"
    "\"BERT-175B (mp=16, ZeRO 0)\",,,5.1 samples/sec\n";

TEST_F(PublishedRows, CellsOfTheMatrix) {
  const auto rows = read(matrix);
  ASSERT_EQ(rows.size(), 3u);
  const RunView run(rows[0].record);
  EXPECT_EQ(run.deck().preset(), "bert-345m");
  EXPECT_EQ(run.deck().tensor_parallel(), 8);
  EXPECT_EQ(run.deck().zero_stage(), 3);
  EXPECT_TRUE(run.deck().offloads());
  EXPECT_EQ(run.deck().global_batch(), 8);
  EXPECT_EQ(run.deck().gradient_accumulation(), 2);
  EXPECT_DOUBLE_EQ(run.summary().rate.samples_per_s, 84.17);
  EXPECT_DOUBLE_EQ(run.summary().device.memory_used_bytes, 30.4e9);
  EXPECT_DOUBLE_EQ(run.summary().device.memory_bytes, 40.5e9);
  EXPECT_DOUBLE_EQ(run.summary().device.power_w.value_or(0.0), 310.0);
  EXPECT_DOUBLE_EQ(run.summary().device.power_limit_w.value_or(0.0), 400.0);
  EXPECT_DOUBLE_EQ(run.summary().device.utilisation.value_or(0.0), 0.97);
  EXPECT_EQ(rows[1].record.summary.world_size, 32);
  EXPECT_EQ(RunView(rows[1].record).outcome(), "OOM");
  EXPECT_EQ(rows[2].record.summary.nodes, 16);
  EXPECT_EQ(RunView(rows[2].record).deck().integer("batch", "micro_batch_size", 0), 0);
  EXPECT_DOUBLE_EQ(rows[2].record.summary.rate.samples_per_s, 5.1);

  const auto list = read(
      "model,nodes,gpus_per_node,mp,zero_stage,offload,micro_batch_size,grad_accum,samples_per_s,"
      "tflops_per_gpu,memory_used_gb,memory_total_gb,power_w,power_limit_w,utilisation_pct\n"
      "bert-345m,1,8,8,3,cpu,4,2,84.17,25.3,30.4,40.5,310,400,97\n"
      "bert-345m,4,8,8,3,cpu,4,2,OOM,,,,,,\n"
      "bert-175b,16,8,16,0,none,,,5.1,,,,,,\n");
  Runs of_list, of_matrix;
  for (const auto& row : list) of_list.emplace_back(row.record, Restatement{}, &row.cells);
  for (const auto& row : rows) of_matrix.emplace_back(row.record, Restatement{}, &row.cells);
  EXPECT_EQ(format_csv(megatron_tables(of_list)), format_csv(megatron_tables(of_matrix)));
}

// What the style prints of published cells is read back.
TEST_F(PublishedRows, TheMatrixThatIsPrintedIsRead) {
  const auto rows = read(matrix);
  Runs runs;
  for (const auto& row : rows) runs.emplace_back(row.record, Restatement{}, &row.cells);
  const std::string printed = format_csv(megatron_tables(runs));
  const auto again = read(printed);
  Runs views;
  for (const auto& row : again) views.emplace_back(row.record, Restatement{}, &row.cells);
  EXPECT_EQ(format_csv(megatron_tables(views)), printed);
  EXPECT_NE(printed.find("published,BERT-345M,1,8,8,1,3,cpu,4,2,84.17,25.3,30.4,40.5,310.0,"
                         "400.0,97.0,,OK\n"),
            std::string::npos)
      << printed;
  EXPECT_NE(format_markdown(megatron_tables(runs))
                .find("| published: BERT-345M (mp=8, grad accum=2, micro-batch=4, ZeRO 3 + "
                      "offload) | 84.17 samples/sec<br>25.3 tflops/gpu<br>30.4/40.5 GB<br>310/400 "
                      "W<br>97 % | OOM"),
            std::string::npos);
  EXPECT_NE(refusal("model \\ num_node * num_gpus,eight\nBERT-345M,OOM\n").find("column 'eight'"),
            std::string::npos);
}

// A point says nothing of its layout; 16 GPUs are two nodes, four are one.
TEST_F(PublishedRows, LayoutOfPointsAndNodesOfZeroRows) {
  const auto points = read("ranks,tokens_per_s\n512,100\n");
  const Table table = scaling_tables({RunView(points.at(0).record, {}, &points.at(0).cells)}).at(0);
  EXPECT_EQ(Fields(table.rows[0].begin(), table.rows[0].begin() + 9),
            (Fields{"published", "512", "-", "-", "-", "-", "-", "-", "-"}));
  EXPECT_NE(table.caption.find("published: published"), std::string::npos) << table.caption;
  const auto rows = read(
      "model,gpus,zero_stage,max_global_batch,time_per_it_ms\ngpt-345m,16,0,8,1000\n"
      "gpt-345m,4,0,8,1000\n");
  EXPECT_EQ(rows.at(0).record.summary.nodes, 2);
  EXPECT_EQ(rows.at(0).record.summary.ranks_per_node, 8);
  EXPECT_EQ(rows.at(1).record.summary.nodes, 1);
  EXPECT_EQ(rows.at(1).record.summary.ranks_per_node, 4);
}

// What a preset has needs no column; a model of one's own is what the columns say.
TEST_F(PublishedRows, ShapesOfZeroRows) {
  const auto keys_of = [&](const std::string& columns, const std::string& values) {
    const auto rows =
        read("model," + columns + "gpus,zero_stage,max_global_batch,time_per_it_ms\n" + values +
             "8,0,8,1000\n");
    const RunView run(rows.at(0).record);
    return std::vector<int64_t>{run.deck().integer("model", "num_layers", -1),
                                run.deck().integer("model", "hidden_size", -1),
                                run.deck().integer("model", "num_attention_heads", -1)};
  };
  EXPECT_EQ(keys_of("", "gpt-345m,"), (std::vector<int64_t>{24, 1024, 16}));
  EXPECT_EQ(keys_of("num_layers,hidden_size,num_heads,", "own,3,64,2,"),
            (std::vector<int64_t>{3, 64, 2}));
}

// A column that no form has is left aside: a remark is no outcome.
TEST_F(PublishedRows, UnknownColumnsAreNotRead) {
  const auto rows = read("remark,ranks,tokens_per_s\nOOM,1,2\n");
  EXPECT_EQ(rows.at(0).record.outcome.status,
            read("ranks,tokens_per_s\n1,2\n").at(0).record.outcome.status);
  EXPECT_EQ(rows.at(0).record.summary.rate.tokens_per_s, 2.0);
}

TEST_F(PublishedRows, WhatIsNoSuchFileIsRefusedByLine) {
  EXPECT_NE(refusal("").find("no published rows"), std::string::npos);
  EXPECT_NE(refusal("ranks,tokens_per_s\n").find("no published rows"), std::string::npos);
  EXPECT_NE(refusal("nodes,tokens_per_s\n1,2\n").find(":1: the first line must name"),
            std::string::npos);
  EXPECT_NE(refusal("ranks,tokens_per_s\n1\n").find(":2: 1 fields"), std::string::npos);
  EXPECT_NE(refusal("ranks,tokens_per_s\n1,x\n").find(":2: tokens_per_s 'x'"), std::string::npos);
  EXPECT_NE(refusal("ranks,tokens_per_s\n1,-\n").find("tokens_per_s '-' is no positive"),
            std::string::npos);
  EXPECT_NE(refusal("ranks,tokens_per_s\n0,5\n").find("ranks '0'"), std::string::npos);
  EXPECT_NE(refusal("model,seq_len,gpus,tokens_per_s,precision\n7b,0.5,8,1,bf99\n").find(":2: "),
            std::string::npos);
  EXPECT_THROW(read_published("/no/such/file.csv"), Error);
}

}  // namespace
}  // namespace gptbench
