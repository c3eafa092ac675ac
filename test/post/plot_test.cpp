// Data and commands of each plot; gptpost_test.sh draws them.
#include "post/plot.h"

#include <gtest/gtest.h>

#include "made_record.h"

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
  EXPECT_TRUE(has(plot.commands, "set xlabel 'Ranks'"));
}

TEST(Plots, ThroughputOverTheSequenceLengthWhereThatVaries) {
  const Record a = on(2, 300, 512), b = on(2, 200, 2048);
  const Plot plot = throughput_plot({RunView(a), RunView(b)});
  EXPECT_TRUE(has(plot.data, "# GPT2-124M, 2 ranks, fp32\n512\t300\n2048\t200\n")) << plot.data;
}

TEST(Plots, ScalingNeedsTwoNumbersOfRanks) {
  const Record one = on(1, 250), four = on(4, 800);
  EXPECT_TRUE(scaling_plot({RunView(one)}).data.empty());
  const Plot plot = scaling_plot({RunView(four), RunView(one)});
  EXPECT_TRUE(has(plot.data, "\n1\t1\t100\t1\n4\t3.2\t80\t4\n")) << plot.data;
}

TEST(Plots, PublishedPointsStandBesideMeasuredOnes) {
  const Record one = on(1, 250), four = on(4, 800);
  const Published published = {{"2.0 GHz", {{2, 100}, {8, 300}}}};
  const Plot scaling = scaling_plot({RunView(one), RunView(four)}, published);
  EXPECT_TRUE(has(scaling.data, "# published: 2.0 GHz\n2\t1\t100\t1\n8\t3\t75\t4\n"))
      << scaling.data;
  EXPECT_TRUE(has(scaling.commands, "index 1 using 1:2 with points")) << scaling.commands;
  const Plot throughput = throughput_plot({RunView(one)}, published);
  EXPECT_TRUE(has(throughput.data, "# published: 2.0 GHz\n2\t100\n8\t300\n")) << throughput.data;
}

TEST(Plots, FailedPointsAreNamedWhereTheyWouldStand) {
  const Record one = on(1, 250), four = on(4, 800);
  Record oom = on(2, 0), late = on(2, 0);
  oom.status = "OOM";
  late.status = "TIMEOUT";
  const Runs runs = {RunView(one), RunView(oom), RunView(four), RunView(late)};
  for (const Plot& plot : {scaling_plot(runs), throughput_plot(runs)})
    EXPECT_TRUE(has(plot.commands, "set label 'OOM, TIMEOUT' at first 2, graph")) << plot.commands;
}

TEST(Plots, BarsOfMemoryAndTime) {
  const Record r = made_record();
  const Plot memory = memory_plot({RunView(r), RunView(r)});
  EXPECT_TRUE(has(memory.data, "run\tparameters\tactivations\n\"made, 2 ranks\"\t474.83"))
      << memory.data;
  EXPECT_TRUE(has(memory.data, "\"made, 2 ranks (2)\""));
  Record timed = r;
  timed.timing = {{"step", "s", "", {9, 10}, 2, 1, false},
                  {"forward", "s", "", {3, 4}, 2, 1, false},
                  {"region_linear", "s", "", {5, 6}, 2, 1, false},
                  {"communication", "s", "", {1, 1}, 2, 1, false}};
  const Plot breakdown = breakdown_plot({RunView(timed)});
  EXPECT_EQ(breakdown.data, "run\tlinear\tcommunication\tother\n\"made, 2 ranks\"\t6\t1\t3\n");
}

TEST(Plots, LossOfEachRun) {
  const Record r = made_record();
  EXPECT_EQ(loss_plot({RunView(r)}).data,
            "# step\tloss (nat a token)\n# made, 2 ranks\n0\t10.98\n1\t10.5\n2\t10.1\n3\t9.75\n");
}

// A title must not end a gnuplot string: nothing of it is ever executed.
TEST(Plots, TitlesAreQuoted) {
  Record r = made_record();
  set_key(r, "run", "name", std::string("a'b\n\"c\\"));
  const Plot loss = loss_plot({RunView(r)});
  EXPECT_TRUE(has(loss.commands, "title 'a''b \"c\\, 2 ranks'")) << loss.commands;
  EXPECT_FALSE(has(loss.data, "\n\"c")) << loss.data;
  EXPECT_TRUE(has(memory_plot({RunView(r)}).data, "\"a'b 'c/, 2 ranks\""));
}

TEST(Plots, NothingToShow) {
  const Record empty;
  for (const PlotKind& kind : plot_kinds) EXPECT_TRUE(kind.make({RunView(empty)}, {}).data.empty());
}

}  // namespace
}  // namespace gptbench
