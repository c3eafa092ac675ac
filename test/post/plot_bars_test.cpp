// Pictures of horizontal bars: memory by class, time by kind of work, messages by axis.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.h"
#include "has.h"
#include "made_record.h"
#include "post/plot.h"
#include "read_picture.h"

namespace gptbench {
namespace {

// A bar is one rank's, that with the most in all classes together.
TEST(BarPictures, MemoryStandsByClassWithItsLimit) {
  Record r = made_record(), oom = made_record();
  r.memory = {{"parameters", "", {200 << 20, 300 << 20}, false},
              {"optimizer_state", "", {250 << 20, 100 << 20}, false},
              {"arena", "", {900 << 20}, false}};
  set_key(r, "memory", "device_memory_gib", 0.5);
  // A run that was refused for its memory has a plan: the extent of each class of its arena.
  oom.outcome.status = "OOM";
  oom.memory.clear();
  oom.arena = {{"wte", "parameters", "f32", 0, 200 << 20, "run"},
               {"h.0", "activations", "f32", 0, 400 << 20, "step"},
               {"h.1", "activations", "f32", 300 << 20, 300 << 20, "step"},
               {"moments", "file", "f32", 0, 700 << 20, "run"}};  // on disk
  set_key(oom, "memory", "device_memory_gib", 0.5);
  const Picture picture = memory_picture({RunView(r), RunView(oom)});
  EXPECT_EQ(bars_of(picture),
            "made, 2 ranks: parameters 200, optimizer state 250,\n"
            "made, 2 ranks, OOM: parameters 200, activations 600,\n");
  ASSERT_EQ(picture.panels[0].rules.size(), 1U);
  EXPECT_EQ(picture.panels[0].rules[0].at, 512.0);
  EXPECT_EQ(std::count_if(picture.panels[0].boxes.begin(), picture.panels[0].boxes.end(),
                          [](const Box& box) { return box.style == hatched; }),
            1);
  EXPECT_EQ(picture.panels[0].boxes[3].behind, "OOM 800.0");
  // Limits that differ are lines of their rows, each with its value behind the bar.
  set_key(r, "memory", "device_memory_gib", 0.625);
  const Picture two = memory_picture({RunView(r), RunView(oom)});
  ASSERT_EQ(two.panels[0].rules.size(), 2U);
  EXPECT_EQ(two.panels[0].rules[1].at, 512.0);
  EXPECT_EQ(two.panels[0].rules[1].top, 0.5);
  EXPECT_EQ(two.panels[0].rules[1].bottom, 1.5);
  EXPECT_EQ(two.panels[0].boxes[1].behind, "450.0, limit 640.0");
  EXPECT_EQ(two.panels[0].boxes[1].clear_of, 640.0);
  EXPECT_EQ(two.panels[0].boxes[3].behind, "OOM 800.0, limit 512.0");
  EXPECT_EQ(two.panels[0].boxes[3].clear_of, 0.0);
}

// A limit of 12 GiB would leave nothing to see of 450 MiB: it has no line, but is told.
TEST(BarPictures, MemoryTellsALimitBeyondTheAxis) {
  Record a = made_record();
  a.memory = {{"parameters", "", {450 << 20}, false}};
  set_key(a, "memory", "device_memory_gib", 12.0);
  Record b = a;
  const Picture common = memory_picture({RunView(a), RunView(b)});
  EXPECT_TRUE(common.panels.at(0).rules.empty());
  EXPECT_EQ(common.notes, std::vector<std::string>{"The limit, 12.00 GiB, lies beyond the axis."});
  set_key(b, "memory", "device_memory_gib", 0.5);
  const Picture two = memory_picture({RunView(a), RunView(b)});
  EXPECT_EQ(two.panels.at(0).rules.size(), 1U);
  EXPECT_EQ(two.panels[0].boxes.at(0).behind, "450.0, limit 12288");
  EXPECT_EQ(two.panels[0].boxes.at(0).clear_of, 0.0);
  EXPECT_EQ(two.panels[0].boxes.at(1).behind, "450.0, limit 512.0");
  EXPECT_EQ(two.notes, std::vector<std::string>{"A limit without a line lies beyond the axis."});
}

// A sum over ranks is drawn as their mean: 200 MiB of two ranks.
TEST(BarPictures, MemoryThatIsASumOverRanks) {
  Record r = made_record();
  r.memory = {{"parameters", "", {200 << 20}, true}, {"device_used", "", {300 << 20}, true}};
  EXPECT_EQ(bars_of(memory_picture({RunView(r)})), "made, 2 ranks: parameters 100,\n");
}

// One bar per rank, with waiting for pipeline messages apart from other communication.
TEST(BarPictures, BreakdownOfEachRank) {
  Record timed = made_record();
  timed.steps.warmup_steps = 0;
  timed.steps.skipped = {0, 0};
  timed.summary.timed_steps = 2;
  timed.timing = {{"step", "s", "", {20, 20, 20, 20}, 2, 2, false},
                  {"forward", "s", "", {3, 4, 3, 4}, 2, 2, false},
                  {"region_linear", "s", "", {12, 8, 12, 8}, 2, 2, false},
                  {"communication", "s", "", {5, 11, 5, 11}, 2, 2, false}};
  timed.comm = {{"pipeline", "send", {1, 1}, {1, 1}, {0, 0}, {0, 0}, {4.0, 18.0}, false}};
  const Picture picture = breakdown_picture({RunView(timed)});
  EXPECT_EQ(
      bars_of(picture),
      "made, 2 ranks, rank 0: linear 12, pipeline wait (bubble) 2, communication 3, other 3,\n"
      "rank 1: linear 8, pipeline wait (bubble) 9, communication 2, other 1,\n");
}

// Another part is disturbed in each step; the parts make up the mean step all the same.
TEST(BarPictures, BreakdownAddsUpToTheStep) {
  Record r = made_record();
  r.steps.warmup_steps = 0;
  r.steps.skipped.clear();
  r.timing = {{"step", "s", "", {20, 20, 50}, 3, 1, false},
              {"region_linear", "s", "", {15, 5, 15}, 3, 1, false},
              {"region_attention", "s", "", {5, 15, 35}, 3, 1, false}};
  EXPECT_NEAR(breakdown_picture({RunView(r)}).panels.at(0).boxes.back().right, 30.0, 1e-9);
  EXPECT_EQ(breakdown_picture({RunView(r)}).panels[0].boxes.size(), 2U);
  r.timing[2].values = {3, 13, 33};
  EXPECT_EQ(bars_of(breakdown_picture({RunView(r)})),
            "made, 2 ranks: linear 12, attention 16, other 2,\n");
}

// Many ranks have one bar: their mean, with error bars over ranks.
TEST(BarPictures, BreakdownOfManyRanks) {
  Record timed = made_record();
  timed.steps.warmup_steps = 0;
  timed.steps.skipped = {0};
  RankSeries step{"step", "s", "", {}, 1, 40, false}, linear = step;
  linear.name = "region_linear";
  for (int rank = 0; rank < 40; ++rank) {
    step.values.push_back(20.0);
    linear.values.push_back(rank < 20 ? 8.0 : 12.0);
  }
  timed.timing = {step, linear};
  const Picture picture = breakdown_picture({RunView(timed)});
  EXPECT_EQ(bars_of(picture), "made, 2 ranks: linear 10, other 10,\n");
  const Mark& mark = picture.panels[0].curves[0].marks[0];
  EXPECT_DOUBLE_EQ(mark.low, 8.0);
  EXPECT_DOUBLE_EQ(mark.high, 12.0);
  EXPECT_TRUE(has(mark.tip, "(8.000 s to 12.00 s over ranks)")) << mark.tip;
  for (RankSeries& series : timed.timing)
    for (double& value : series.values) value *= 1e-3;
  const Picture short_steps = breakdown_picture({RunView(timed)});
  const Mark& in_ms = short_steps.panels[0].curves[0].marks[0];
  EXPECT_DOUBLE_EQ(in_ms.low, 8.0);
  EXPECT_DOUBLE_EQ(in_ms.high, 12.0);
}

// Of many ranks a series has its minima, means, maxima and values of the slowest step.
TEST(BarPictures, BreakdownOfMaximaOverRanks) {
  Record r = made_record();
  r.steps.warmup_steps = 0;
  r.steps.skipped = {0};
  r.summary.world_size = 1000;
  r.timing = {{"step", "s", "", {10, 11, 12, 13}, 1, 4, true},
              {"region_linear", "s", "", {3, 4, 7, 1}, 1, 4, true}};
  const Picture picture = breakdown_picture({RunView(r)});
  EXPECT_TRUE(has(bars_of(picture), ", maxima over ranks: linear 7,")) << bars_of(picture);
  EXPECT_EQ(picture.panels[0].y.ticks.size(), 1U);
  // The range is that from minima to maxima; what is made of several series ("other") has none.
  const auto ranges = [&] {
    const Picture drawn = breakdown_picture({RunView(r)});
    std::vector<std::string> of;
    for (const Curve& curve : drawn.panels.at(0).curves)
      for (const Mark& mark : curve.marks) of.push_back(mark.tip.substr(mark.tip.find(": ") + 2));
    return of;
  };
  const std::string of_linear = "linear 7.000 s, 58.3 % (3.000 s to 7.000 s over ranks)";
  EXPECT_EQ(ranges(), std::vector<std::string>{of_linear});
  r.timing.push_back({"communication", "s", "", {1, 2, 5, 3}, 1, 4, true});
  const std::string of_messages = "communication 5.000 s, 41.7 % (1.000 s to 5.000 s over ranks)";
  EXPECT_EQ(ranges(), (std::vector<std::string>{of_linear, of_messages}));
  // Messages are sums over ranks, drawn as their mean: 2,000 s of 1,000 ranks.
  r.summary.timed_steps = 1;
  r.comm = {{"pipeline", "send", {1}, {1}, {0}, {0}, {2000.0}, true}};
  const std::string bars = bars_of(breakdown_picture({RunView(r)}));
  EXPECT_TRUE(has(bars, " linear 7, pipeline wait (bubble) 2, communication 3,")) << bars;
  EXPECT_EQ(ranges(), std::vector<std::string>{of_linear});
}

TEST(BarPictures, MessagesPerStep) {
  const Picture picture = messages_picture({RunView(made_record())});
  // 101 B, 0.5 s in flight, 0.125 s exposed over three steps, on the rank with the most.
  EXPECT_TRUE(has(bars_of(picture), "data all reduce: payload 34,\n")) << bars_of(picture);
  EXPECT_TRUE(has(bars_of(picture, 1),
                  "data all reduce, in flight: in flight 167,\nexposed: rank "
                  "waited for it, or drove it 42,\n"))
      << bars_of(picture, 1);
  // Calls as whole numbers where they are, each payload in a unit of its own.
  const auto behind = [](int64_t bytes, int64_t count) {
    Record r = made_record();
    r.comm[0].bytes = {bytes};
    r.comm[0].count = {count};
    return messages_picture({RunView(r)}).panels[0].boxes[0].behind;
  };
  EXPECT_EQ(behind(3 * 260 * MiB, 3 * 4160), "4,160 calls, 260.0 MiB");
  EXPECT_EQ(behind(3 * 8, 3), "1 call, 8 B");
  EXPECT_EQ(behind(3 * 8, 4), "1.3 calls, 8 B");
  EXPECT_EQ(behind(INT64_MAX, 3), "1 call, 2863311530.67 GiB");
  // A file of many ranks holds sums over ranks, which the picture divides by the number of ranks.
  Record reduced = made_record();
  for (CommEntry& entry : reduced.comm) entry.reduced = true;
  const Picture means = messages_picture({RunView(reduced)});
  EXPECT_EQ(means.panels[0].x.label, "Payload per step, mean over ranks (B)");
  Record projected = made_record();
  projected.comm[0].exposed_s.clear();
  EXPECT_TRUE(has(bars_of(messages_picture({RunView(projected)}), 1),
                  "data all reduce, in flight: in flight 167,\nworld"))
      << bars_of(messages_picture({RunView(projected)}), 1);
  // Of many ranks the sum is known: 200 B of two ranks.
  Record many = made_record();
  many.summary.world_size = 2;
  many.comm = {{"data", "all_reduce", {200}, {3}, {1.0}, {1.0}, {0.25}, true}};
  EXPECT_TRUE(has(bars_of(messages_picture({RunView(many)})), "data all reduce: payload 33,\n"))
      << bars_of(messages_picture({RunView(many)}));
}

// An operation has one style in both panels of a picture of several runs, though only some
// operations have times.
TEST(BarPictures, OperationsKeepTheirStyle) {
  Record r = made_record();
  r.comm = {{"tensor", "all_reduce", {100}, {1}, {1.0}, {1.0}, {}, false},
            {"pipeline", "send", {100}, {1}, {1.0}, {1.0}, {0.5}, false}};
  const Picture picture = messages_picture({RunView(r), RunView(r)});
  ASSERT_EQ(picture.panels.size(), 2U);
  size_t style_of_send = 99;
  for (const LegendEntry& entry : picture.legend)
    if (entry.name == "pipeline send") style_of_send = entry.style;
  for (const Box& box : picture.panels[1].boxes) EXPECT_EQ(box.style, style_of_send);
}

}  // namespace
}  // namespace gptbench
