// Pictures of one run: memory map, ranks by host, roofline.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "deck/deck.h"
#include "deck/validate.h"
#include "has.h"
#include "made_record.h"
#include "plan/plan.h"
#include "post/cells.h"
#include "post/plot.h"

namespace gptbench {
namespace {

TEST(RunPictures, BuffersThatShareBytesLieBelowEachOther) {
  Record r = made_record();
  r.arena = {{"activations::a", "activations", "f32", 0, 1 << 20, "operations 1-4 9-12"},
             {"activations::b", "activations", "f32", 0, 1 << 20, "operations 5-8"},
             {"activations::c", "activations", "f32", 1 << 20, 1 << 20, "run"}};
  const Picture picture = memory_map_picture({RunView(r)});
  ASSERT_EQ(picture.panels[0].boxes.size(), 3U);
  EXPECT_EQ(picture.panels[0].boxes[0].inside, "a");
  EXPECT_LT(picture.panels[0].boxes[0].bottom, picture.panels[0].boxes[1].top);
  EXPECT_EQ(picture.panels[0].boxes[0].top, picture.panels[0].boxes[2].top);
  EXPECT_EQ(picture.panels[0].height, 60.0);  // two lanes and half of one between classes
  ASSERT_EQ(picture.legend.size(), 2U);
  EXPECT_EQ(picture.legend[0].name, "part of a program");
}

TEST(RunPictures, RanksStandByHost) {
  Record r = made_record();
  r.steps.warmup_steps = 0;
  r.steps.skipped.clear();
  r.provenance.hostnames = {"node0", "node1", "node0"};
  r.timing = {{"step", "s", "", {10, 10, 10}, 1, 3, false},
              {"communication", "s", "", {4, 1, 4}, 1, 3, false}};
  const Picture picture = ranks_picture({RunView(r)});
  ASSERT_EQ(picture.panels[0].y.ticks.size(), 2U);
  ASSERT_EQ(picture.panels[0].boxes.size(), 3U);
  EXPECT_TRUE(has(picture.panels[0].boxes[1].tip, "rank 2 on node0: 6"));
  EXPECT_TRUE(has(picture.panels[0].boxes[2].tip, "rank 1 on node1: 9"));
  EXPECT_LT(picture.panels[0].boxes[0].strength, picture.panels[0].boxes[2].strength);
  // Seconds from one second on.
  r.timing[0].values = {5, 2, 5};
  EXPECT_TRUE(has(ranks_picture({RunView(r)}).panels[0].boxes[1].tip, "rank 2 on node0: 1.000 s,"))
      << ranks_picture({RunView(r)}).panels[0].boxes[1].tip;
}

// Beside reduced series the file has one median per rank. Of 1,025 the fastest is left out.
TEST(RunPictures, RanksOfReducedSeries) {
  Record r = made_record();
  r.timing = {{"step", "s", "", {1, 2, 3, 0}, 1, 4, true}};
  EXPECT_TRUE(ranks_picture({RunView(r)}).panels.empty());
  r.rank_computing_s = {6, 9, 6};
  ASSERT_EQ(ranks_picture({RunView(r)}).panels.size(), 1U);
  EXPECT_EQ(ranks_picture({RunView(r)}).panels[0].boxes.size(), 3U);
  EXPECT_EQ(ranks_picture({RunView(r)}).notes.size(), 1U);
  r.rank_computing_s.assign(1025, 9.0);
  r.rank_computing_s[3] = 6.0;
  const Picture picture = ranks_picture({RunView(r)});
  ASSERT_EQ(picture.panels[0].boxes.size(), 1024U);
  for (const Box& box : picture.panels[0].boxes) EXPECT_FALSE(has(box.tip, "rank 3 ")) << box.tip;
  ASSERT_EQ(picture.notes.size(), 2U);
  EXPECT_EQ(picture.notes[1], "The slowest 1024 of 1025 ranks.");
}

// FLOPs of all kinds are those of the plan, and each point lies at its bytes per second.
TEST(RunPictures, RooflineOfThePlan) {
  const std::string deck =
      "&model num_layers = 2, hidden_size = 64, num_attention_heads = 2, seq_length = 32,\n"
      "  vocab_size = 100, vocab_multiple = 1 /\n";
  Record r = made_record();
  r.steps.warmup_steps = 0;
  r.steps.skipped.clear();
  r.summary.world_size = 1;
  r.provenance.deck_resolved = deck;
  r.timing.clear();
  for (const char* kind : {"linear", "attention", "head_loss", "optimizer", "layernorm"})
    r.timing.push_back({std::string("region_") + kind, "s", "", {2.0}, 1, 1, false});
  const Picture picture = roofline_picture({RunView(r)});
  ASSERT_EQ(picture.panels.size(), 2U);
  const double flops = make_plan(resolve(parse_deck("", deck, {}), 1), 1, 0).costs.model_flops;
  double sum = 0.0;
  for (const Curve& curve : picture.panels[0].curves) {
    if (curve.style == neutral) continue;
    const Mark& mark = curve.marks.at(0);
    sum += 2e9 * mark.y;
    for (const Box& box : picture.panels[1].boxes) {
      if (box.name != curve.name) continue;
      EXPECT_NEAR(mark.y, mark.x * box.right, 1e-9 * mark.y);
      EXPECT_TRUE(has(box.tip, ": " + significant(box.right, 3, 3) + " GB/s")) << box.tip;
    }
  }
  const double attention = 12.0 * 2 * 64 * 32 * 32;  // 12 L C T T; a causal mask leaves half
  EXPECT_NEAR(sum, flops - 0.5 * attention, 1e-9 * flops);
  EXPECT_EQ(picture.panels[1].boxes.size(), 5U);
  // Each of four micro-batches counts.
  Record more = r;
  more.provenance.deck_resolved += "&batch micro_batch_size = 1, global_batch_size = 4 /\n";
  double sum_of_more = 0.0;
  const Picture picture_of_more = roofline_picture({RunView(more)});
  for (const Curve& curve : picture_of_more.panels.at(0).curves)
    if (curve.style != neutral) sum_of_more += 2e9 * curve.marks.at(0).y;
  EXPECT_NEAR(sum_of_more, 4.0 * sum, 1e-9 * sum_of_more);
  // A series of no ranks, as only a damaged file has, says nothing.
  Record damaged = r;
  damaged.timing.push_back({"region_linear", "s", "", {}, 2, 0, false});
  EXPECT_EQ(roofline_picture({RunView(damaged)}).panels[1].boxes.size(), 5U);
  // Without a data sheet the roof is the highest rate.
  r.summary.device.name.clear();
  const Picture own = roofline_picture({RunView(r)});
  double highest = 0.0;
  for (const Box& box : own.panels[1].boxes) highest = std::max(highest, box.right);
  const std::string roof = "roof: " + significant(highest, 3, 3) + " GB/s, the highest of this run";
  EXPECT_TRUE(std::any_of(own.panels[0].curves.begin(), own.panels[0].curves.end(),
                          [&](const Curve& curve) { return curve.name == roof; }))
      << roof;
  // A ceiling that varied too much for MFU is a roof all the same.
  r.summary.peak.tflops = 0.0;
  r.summary.gemm_ceiling = {1e-6, 0.12};
  const Picture varied = roofline_picture({RunView(r)});
  EXPECT_TRUE(has(varied.legend.back().name,
                  "; 0.001 GFLOP/s, measured GEMM ceiling, which varied by 12 %"))
      << varied.legend.back().name;
  EXPECT_DOUBLE_EQ(varied.panels[0].curves.back().marks.back().y, 1e-3);
  r.provenance.deck_resolved = "&model num_layerz = 2 /";
  EXPECT_TRUE(roofline_picture({RunView(r)}).empty());
}

// Rank 0's operations of one size are one point; waits and what moves nothing are none.
TEST(RunPictures, RooflineOfATrace) {
  const std::string directory = testing::TempDir() + "gptbench_plot_roofline";
  std::filesystem::create_directories(directory);
  std::ofstream file(directory + "/trace.json");
  const auto span = [&](const char* category, int rank, int duration_us, const std::string& work) {
    file << R"({"ph":"X","name":"a","cat":")" << category << R"(","pid":)" << rank
         << R"(,"tid":0,"ts":0,"dur":)" << duration_us << R"(,"args":{"bytes":0)" << work << "}}\n";
  };
  for (const int duration_us : {100, 300})
    span("linear", 0, duration_us, R"(,"work":"linear_forward 4x8x8","flops":512,"moved":256)");
  span("linear", 0, 200, R"(,"work":"linear_forward 4x8x32","flops":2048,"moved":256)");
  span("layernorm", 0, 500, R"(,"work":"layernorm_forward","flops":0,"moved":1000)");
  span("linear", 1, 900, R"(,"work":"linear_forward 4x8x8","flops":512,"moved":256)");
  span("wait", 0, 900, R"(,"work":"adamw","flops":0,"moved":9)");
  for (int i = 0; i < 30; ++i)
    span("optimizer", 0, 1,
         printed(R"(,"work":"kernel %d","flops":0,"moved":%d)", i, i == 0 ? 0 : 9));
  file.close();
  const Record r = made_record();
  const Picture picture = roofline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  EXPECT_EQ(picture.title, "Roofline of rank 0 by operation");
  ASSERT_EQ(picture.panels.size(), 2U);
  const Curve& linear = picture.panels[0].curves.at(0);
  ASSERT_EQ(linear.marks.size(), 2U);
  EXPECT_DOUBLE_EQ(linear.marks[0].x, 2.0);                    // 1,024 FLOPs of 512 bytes
  EXPECT_DOUBLE_EQ(linear.marks[0].y, 1024.0 / 400e-6 / 1e9);  // in 400 us
  EXPECT_DOUBLE_EQ(linear.marks[1].y, 2048.0 / 200e-6 / 1e9);
  EXPECT_TRUE(has(linear.marks[1].tip, "linear_forward 4x8x32: ")) << linear.marks[1].tip;
  const std::vector<Box>& boxes = picture.panels[1].boxes;
  ASSERT_EQ(boxes.size(), 24U);
  EXPECT_TRUE(has(boxes[0].tip, "layernorm_forward: 0.002 GB/s, 0.500 ms in all")) << boxes[0].tip;
  EXPECT_DOUBLE_EQ(boxes[1].right, 512.0 / 400e-6 / 1e9);
  ASSERT_EQ(picture.legend.size(), 4U);  // three kinds of work and the roof
  // 1,121 of 1,129 us.
  EXPECT_EQ(picture.notes.at(0),
            "The longest 24 of 32 operations of the traced step, 99.3 % of their time.");
  // A projection says so, and that its trace leaves micro-batches out.
  std::ofstream(directory + "/trace.json")
      << R"({"ph":"M","name":"process_labels","pid":0,"args":{"labels":"3 of 8 micro-batches"}})"
      << '\n'
      << R"({"ph":"X","name":"a","cat":"linear","pid":0,"tid":0,"ts":0,"dur":1,"args":)"
      << R"({"work":"linear_forward 4x8x8","flops":512,"moved":256}})" << '\n';
  Record projected = r;
  projected.projection.machine = "a100-80";
  EXPECT_EQ(
      roofline_picture({RunView(projected, {}, nullptr, directory + "/result.h5")}).notes.at(0),
      "Every operation of the projected step, the longest first. It has 3 of 8 micro-batches.");
}

}  // namespace
}  // namespace gptbench
