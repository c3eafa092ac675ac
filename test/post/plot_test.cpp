// Data and commands of each plot; gptpost_test.sh draws them.
#include "post/plot.h"

#include <gtest/gtest.h>

#include "made_record.h"
#include "post/plot_text.h"

namespace gptbench {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Record on(int64_t ranks, double tokens_per_s, int64_t seq_length = 1024) {
  Record r = made_record();
  set_key(r, "model", "seq_length", seq_length);
  r.summary.world_size = ranks;
  r.summary.tokens_per_s = tokens_per_s;
  return r;
}

TEST(Plots, ThroughputOverRanksInAscendingOrder) {
  const Record four = on(4, 800), one = on(1, 250), failed = on(2, 400);
  Record oom = failed;
  oom.status = "OOM";
  const Plot plot = throughput_plot({RunView(four), RunView(oom), RunView(one)});
  EXPECT_EQ(plot.data, "# Ranks\tTokens/s\n# GPT2-124M, sequence 1024, fp32\n1\t250\n4\t800\n");
  EXPECT_TRUE(has(plot.commands, "set xlabel \"Ranks\""));
}

TEST(Plots, ThroughputOverTheSequenceLengthWhereThatVaries) {
  const Record a = on(2, 300, 512), b = on(2, 200, 2048);
  const Plot plot = throughput_plot({RunView(a), RunView(b)});
  EXPECT_TRUE(has(plot.data, "# GPT2-124M, 2 ranks, fp32\n512\t300\n2048\t200\n")) << plot.data;
}

TEST(Plots, TheAxisIsTheRanksWhereBothVaryAlike) {
  const Record a = on(2, 300, 512), b = on(4, 200, 2048);
  EXPECT_TRUE(has(throughput_plot({RunView(a), RunView(b)}).data, "# Ranks"));
}

TEST(Plots, TheAxisCanBeAskedFor) {
  const Record a = on(2, 300, 512), b = on(4, 200, 512);
  EXPECT_TRUE(has(throughput_plot({RunView(a), RunView(b)}, {"length"}).data, "Sequence length"));
  const Record c = on(2, 300, 512), d = on(2, 200, 2048);
  EXPECT_TRUE(has(throughput_plot({RunView(c), RunView(d)}, {"ranks"}).data, "# Ranks"));
}

// Of several runs of one point the best is drawn; ZeRO stages and devices are curves of their own.
TEST(Plots, OneValueForEachPointOfACurve) {
  const Record slow = on(2, 300), fast = on(2, 400);
  Record sharded = on(2, 250), elsewhere = on(2, 500);
  set_key(sharded, "parallel", "zero_stage", int64_t{3});
  EXPECT_TRUE(has(throughput_plot({RunView(slow), RunView(fast), RunView(sharded)}).data,
                  "fp32\n2\t400\n\n\n# GPT2-124M, sequence 1024, fp32, ZeRO 3\n2\t250\n"));
  elsewhere.summary.device_name = "a64fx";
  EXPECT_TRUE(has(throughput_plot({RunView(slow), RunView(elsewhere)}).data,
                  "fp32, x86-64\n2\t300\n\n\n# GPT2-124M, sequence 1024, fp32, a64fx\n"));
}

// Rank counts that lie close together would write their labels over each other.
TEST(Plots, TicsHaveRoomForTheirLabels) {
  EXPECT_EQ(log_axis("x", {4, 1, 2}, true, 800),
            "set logscale x 10\nset xrange [0.8:5]\nset xtics (\"1\" 1, \"2\" 2, \"4\" 4)\n");
  const std::string close = log_axis("x", {512, 513, 1024, 1}, true, 800);
  EXPECT_TRUE(has(close, "\"512\" 512, \"1024\" 1024")) << close;
  EXPECT_FALSE(has(close, "513")) << close;
  EXPECT_TRUE(has(log_axis("y", {900.0, 5e6}, false, 460), "\"10k\" 10000"));
  EXPECT_TRUE(has(log_axis("y", {900.0, 5e6}, false, 460), "\"1M\" 1000000"));
  EXPECT_TRUE(has(log_axis("y", {90.0, 310.0}, false, 460),
                  "\"100\" 100, \"150\" 150, \"200\" 200, \"300\" 300"));
  const std::string one = log_axis("y", {32401.0}, false, 460);
  EXPECT_TRUE(has(one, "\"30k\" 30000, \"40k\" 40000")) << one;
}

// Sequence lengths and ranks are read exactly; round numbers are short.
TEST(Plots, LabelsOfTics) {
  EXPECT_TRUE(has(log_axis("x", {8192, 12000, 65536, 1.5e6, 2e9, 3e12}, true, 8000),
                  "(\"8192\" 8192, \"12k\" 12000, \"65536\" 65536, \"1.5M\" 1500000, \"2G\" "
                  "2e+09, \"3T\" 3e+12)"));
}

TEST(Plots, TwentySeriesAreToldApartAndFitTheLegend) {
  std::vector<Record> records;
  Runs runs;
  for (int64_t i = 0; i < 20; ++i) {
    records.push_back(on(2, 100.0 + static_cast<double>(i)));
    set_key(records.back(), "model", "preset", "model-" + std::to_string(i));
  }
  for (const Record& record : records) runs.emplace_back(record);
  const Plot plot = throughput_plot(runs), single = throughput_plot({runs.front()});
  EXPECT_TRUE(has(plot.commands, "lt 1 pt 6 dt 2 title \"MODEL-12")) << plot.commands;
  EXPECT_GE(plot.height, single.height + 6 * 20);  // seven rows of three against one
}

TEST(Plots, ScalingNeedsTwoNumbersOfRanks) {
  const Record one = on(1, 250), four = on(4, 800);
  EXPECT_TRUE(scaling_plot({RunView(one)}).data.empty());
  const Plot plot = scaling_plot({RunView(four), RunView(one)});
  EXPECT_TRUE(has(plot.data, "\n1\t1\t100\t1\n4\t3.2\t80\t4\n")) << plot.data;
  // The ideal of 4 fits: a quarter of room on both sides.
  EXPECT_TRUE(has(plot.commands, "set yrange [0.8:5]")) << plot.commands;
}

TEST(Plots, PublishedPointsStandBesideMeasuredOnes) {
  const Record one = on(1, 250), four = on(4, 800);
  const PublishedCells cells;
  Record two, eight;
  two.config = eight.config = {{"run", "name", std::string("2.0 GHz"), "1", ""}};
  two.status = eight.status = "OK";
  two.summary.world_size = 2;
  two.summary.tokens_per_s = 100;
  eight.summary.world_size = 8;
  eight.summary.tokens_per_s = 300;
  const RunView point_a(eight, {}, &cells), point_b(two, {}, &cells);
  const Plot scaling = scaling_plot({RunView(one), RunView(four), point_a, point_b});
  EXPECT_TRUE(has(scaling.data, "# published: 2.0 GHz\n2\t1\t100\t1\n8\t3\t75\t4\n"))
      << scaling.data;
  EXPECT_TRUE(has(scaling.commands, "index 0 using 1:2 with linespoints")) << scaling.commands;
  EXPECT_TRUE(has(scaling.commands, "index 1 using 1:2 with points")) << scaling.commands;
  const Plot throughput = throughput_plot({RunView(one), point_a, point_b});
  EXPECT_TRUE(has(throughput.data, "# published: 2.0 GHz\n2\t100\n8\t300\n")) << throughput.data;
}

TEST(Plots, FailedPointsAreNamedWhereTheyWouldStand) {
  const Record one = on(1, 250), four = on(4, 800);
  Record oom = on(2, 0), late = on(2, 0);
  oom.status = "OOM";
  late.status = "TIMEOUT";
  const Runs runs = {RunView(one), RunView(oom), RunView(four), RunView(late)};
  for (const Plot& plot : {scaling_plot(runs), throughput_plot(runs)})
    EXPECT_TRUE(has(plot.commands, "set label \"OOM, TIMEOUT\" at first 2, graph"))
        << plot.commands;
}

TEST(Plots, BarsOfMemoryAndTime) {
  const Record r = made_record();
  const Plot memory = memory_plot({RunView(r), RunView(r)});
  EXPECT_TRUE(has(memory.data,
                  "# Memory of the fullest rank (GiB)\nrun\tparameters\tactivations\n\"made, 2 "
                  "ranks\"\t0.463708878"))
      << memory.data;
  EXPECT_TRUE(has(memory.data, "\"made, 2 ranks (2)\""));
  Record timed = r;
  timed.timing = {{"step", "s", "", {9, 10}, 2, 1, false},
                  {"forward", "s", "", {3, 4}, 2, 1, false},
                  {"region_linear", "s", "", {5, 6}, 2, 1, false},
                  {"communication", "s", "", {1, 1}, 2, 1, false}};
  const Plot breakdown = breakdown_plot({RunView(timed)});
  EXPECT_EQ(breakdown.data,
            "# Time per step of the slowest rank (s)\nrun\tlinear\tcommunication\tother\n\"made, 2 "
            "ranks\"\t6\t1\t3\n");
}

// Kinds of work stand in one order, whatever that of the record is; what is in none comes last.
TEST(Plots, OrderOfKindsOfWork) {
  Record r = made_record();
  r.timing = {{"step", "s", "", {20}, 1, 1, false}};
  for (const char* kind : {"communication", "region_optimizer", "region_rest", "region_data",
                           "region_embedding", "region_activation", "region_layernorm",
                           "region_head_loss", "region_attention", "region_linear"})
    r.timing.push_back({kind, "s", "", {1}, 1, 1, false});
  r.warmup_steps = 0;
  EXPECT_TRUE(has(breakdown_plot({RunView(r)}).data,
                  "\nrun\tlinear\tattention\thead_loss\tlayernorm\tactivation\tembedding\tdata\t"
                  "optimizer\tcommunication\trest\tother\n"))
      << breakdown_plot({RunView(r)}).data;
}

// A sum over ranks is drawn as their mean: 200 MiB of two ranks.
TEST(Plots, MemoryThatIsASumOverRanks) {
  Record r = made_record();
  r.memory = {{"parameters", "", {200 << 20}, true}, {"device_used", "", {300 << 20}, true}};
  EXPECT_EQ(memory_plot({RunView(r)}).data,
            "# Memory of the fullest rank (MiB)\nrun\tparameters\n\"made, 2 ranks\"\t100\n");
}

// A run that was refused for its memory has a plan: the extent of each class of its arena.
TEST(Plots, MemoryOfARunThatDidNotFitIsThePlans) {
  Record r = made_record();
  r.status = "OOM";
  r.memory.clear();
  r.arena = {{"wte", "parameters", "f32", 0, 2 << 20, "run"},
             {"h.0", "activations", "f32", 0, 4 << 20, "step"},
             {"h.1", "activations", "f32", 3 << 20, 3 << 20, "step"}};
  EXPECT_EQ(memory_plot({RunView(r)}).data,
            "# Memory of the fullest rank (MiB)\nrun\tparameters\tactivations\n"
            "\"made, 2 ranks, OOM\"\t2\t6\n");
}

TEST(Plots, LossOfEachRun) {
  const Record r = made_record();
  EXPECT_EQ(loss_plot({RunView(r)}).data,
            "# step\tloss (nat per token)\n# made, 2 ranks\n0\t10.98\n1\t10.5\n2\t10.1\n3\t9.75\n");
}

// A title must not end a gnuplot string, and nothing of it is executed or obeyed.
TEST(Plots, TitlesAreQuoted) {
  Record r = made_record();
  set_key(r, "run", "name", std::string("'a'b\n\"c\\`d`@e\x1b"));
  const Plot loss = loss_plot({RunView(r)});
  EXPECT_TRUE(has(loss.commands, "title \"'a'b \\042c\\134\\140d\\140\\100e\\134x1b, 2 ranks\"\n"))
      << loss.commands;
  EXPECT_TRUE(has(loss.data, "\n# 'a'b \"c\\`d`@e\\x1b, 2 ranks\n0\t")) << loss.data;
  r.memory[0].name = "para\nmeters\t";
  const std::string data = memory_plot({RunView(r)}).data;
  EXPECT_TRUE(has(data, "\"'a'b 'c/`d`@e/x1b, 2 ranks\"")) << data;
  EXPECT_TRUE(has(data, "\nrun\tactivations\tpara meters \n")) << data;
}

TEST(Plots, NothingToShow) {
  const Record empty;
  for (const PlotKind& kind : plot_kinds) EXPECT_TRUE(kind.make({RunView(empty)}, {}).data.empty());
}

}  // namespace
}  // namespace gptbench
