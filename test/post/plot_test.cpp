// What each picture holds; gptpost_test.sh and report_test.sh draw them.
#include "post/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/units.h"
#include "deck/deck.h"
#include "deck/validate.h"
#include "made_record.h"
#include "plan/plan.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/report.h"
#include "post/svg.h"
#include "post/trace.h"

namespace gptbench {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Record on(int64_t ranks, double tokens_per_s, int64_t seq_length = 1024) {
  Record r = made_record();
  set_key(r, "model", "seq_length", seq_length);
  set_key(r, "parallel", "data_parallel", ranks);
  r.summary.world_size = ranks;
  r.summary.rate.tokens_per_s = tokens_per_s;
  return r;
}

// "name: (x y) (x y)" per curve.
std::string curves_of(const Picture& picture, size_t panel = 0) {
  std::string text;
  if (picture.panels.size() <= panel) return text;
  for (const Curve& curve : picture.panels[panel].curves) {
    text += curve.name + ":";
    for (const Mark& mark : curve.marks)
      text += " (" + std::to_string(std::lround(mark.x)) + " " +
              std::to_string(std::lround(mark.y)) + ")";
    text += "\n";
  }
  return text;
}

// "row: part value, part value" per row, of boxes with a width.
std::string bars_of(const Picture& picture, size_t panel = 0) {
  std::string text;
  if (picture.panels.size() <= panel) return text;
  for (const auto& [row, label] : picture.panels[panel].y.ticks) {
    text += label + ":";
    for (const Box& box : picture.panels[panel].boxes)
      if (box.top < row && row < box.bottom && box.right > box.left && box.left + 1e-9 >= 0.0 &&
          box.name != "did not fit")
        text += " " + box.name + " " + std::to_string(std::lround(box.right - box.left)) + ",";
    text += "\n";
  }
  return text;
}

TEST(Plots, ThroughputOverRanksInAscendingOrder) {
  const Record four = on(4, 800), one = on(1, 250), failed = on(2, 400);
  Record oom = failed;
  oom.outcome.status = "OOM";
  const Picture picture = throughput_picture({RunView(four), RunView(oom), RunView(one)});
  EXPECT_EQ(curves_of(picture), ": (1 250) (4 800)\n");
  EXPECT_EQ(picture.panels[0].x.label, "Ranks");
  EXPECT_TRUE(has(picture.subtitle, "GPT2-124M, sequence 1024, fp32, data parallel, ZeRO 0"))
      << picture.subtitle;
  EXPECT_TRUE(has(picture.subtitle, "made machine; 2024-03-09")) << picture.subtitle;
  // The step of 31.5 to 33 s around 32 s.
  const Mark& mark = picture.panels[0].curves[0].marks[0];
  EXPECT_NEAR(mark.low, 250.0 * 32.0 / 33.0, 1e-9);
  EXPECT_NEAR(mark.high, 250.0 * 32.0 / 31.5, 1e-9);
  // The failed run is named where it would stand, and below.
  EXPECT_EQ(picture.panels[0].rules[0].label, "OOM");
  EXPECT_EQ(picture.panels[0].rules[0].at, 2.0);
  EXPECT_TRUE(has(picture.notes.back(), "made, 2 ranks, OOM")) << picture.notes.back();
}

TEST(Plots, ThroughputOverTheSequenceLengthWhereThatVaries) {
  const Record a = on(2, 300, 512), b = on(2, 200, 2048);
  EXPECT_EQ(curves_of(throughput_picture({RunView(a), RunView(b)})), ": (512 300) (2048 200)\n");
  EXPECT_EQ(throughput_picture({RunView(a), RunView(b)}, {"ranks"}).panels[0].boxes.size(), 2U);
  const Record c = on(4, 200, 2048);
  const Picture both = throughput_picture({RunView(a), RunView(c)});
  EXPECT_EQ(both.panels[0].x.label, "Ranks");
}

// No run is left out: repeats are marks of one series, layouts are series of their own.
TEST(Plots, EveryRunIsDrawn) {
  const Record base = on(1, 200), slow = on(2, 300), fast = on(2, 400);
  Record sharded = on(2, 250), split = on(2, 500);
  set_key(sharded, "parallel", "zero_stage", int64_t{3});
  set_key(split, "parallel", "tensor_parallel", int64_t{2});
  set_key(split, "parallel", "data_parallel", int64_t{1});
  const Picture picture = throughput_picture(
      {RunView(base), RunView(fast), RunView(slow), RunView(sharded), RunView(split)});
  EXPECT_EQ(curves_of(picture),
            "data parallel, ZeRO 0: (1 200) (2 400) (2 300)\ndata parallel, ZeRO 3: (2 250)\n"
            "tp2, ZeRO 0: (2 500)\n");
  EXPECT_EQ(picture.legend.size(), 3U);
  // The same runs, and the same series, in the picture of MFU.
  EXPECT_EQ(utilisation_picture(
                {RunView(base), RunView(fast), RunView(slow), RunView(sharded), RunView(split)})
                .legend.size(),
            3U);
}

TEST(Plots, AnyKeyOfTheLayoutTellsSeriesApart) {
  Record a = on(2, 300), b = on(2, 400);
  set_key(a, "parallel", "pipeline_schedule", std::string("gpipe"));
  set_key(b, "parallel", "pipeline_schedule", std::string("1f1b"));
  set_key(a, "run", "name", std::string("x"));
  const Naming naming = naming_of({RunView(a), RunView(b)}, false);
  EXPECT_EQ(naming.names[0], "pipeline_schedule gpipe");
  EXPECT_EQ(naming.names[1], "pipeline_schedule 1f1b");
}

// Keys of &run that choose another device or library do, too; others do not.
TEST(Plots, TheDeviceTellsSeriesApart) {
  Record a = on(2, 300), b = on(2, 400);
  set_key(a, "run", "device", std::string("host"));
  set_key(b, "run", "device", std::string("ref"));
  set_key(a, "run", "seed", int64_t{1});
  set_key(b, "run", "seed", int64_t{2});
  const Naming naming = naming_of({RunView(a), RunView(b)}, false);
  EXPECT_EQ(naming.names[0], "device host");
  EXPECT_EQ(naming.names[1], "device ref");
}

// With one number of ranks there is nothing to draw a line over: a bar per run.
TEST(Plots, BarsWhereThereIsOneNumberOfRanks) {
  const Record a = on(2, 300), b = on(2, 400);
  const Picture picture = throughput_picture({RunView(a), RunView(b)});
  EXPECT_EQ(bars_of(picture),
            "made, 2 ranks: made, 2 ranks 300,\nmade, 2 ranks (2): made, 2 "
            "ranks (2) 400,\n");
  const Record slow = on(2, 0.0123456);
  EXPECT_EQ(throughput_picture({RunView(slow)}).panels[0].boxes[0].behind, "0.0123");
  // The figure stands right of the error bar, which a note explains.
  const Box& box = picture.panels[0].boxes[0];
  EXPECT_EQ(box.inside, "");
  EXPECT_EQ(box.behind, "300.0");
  EXPECT_EQ(box.clear_of, picture.panels[0].curves[0].marks[0].high);
  EXPECT_EQ(picture.notes[0], "Each bar is a run; its error bar spans the timed steps.");
}

// Error bars of a projection are its band, not a range over steps: 32 s between 16 and 64 s.
TEST(Plots, TheBandOfAProjection) {
  const Record measured = on(2, 300);
  Record projected = on(2, 400);
  projected.projection.machine = "h100";
  projected.projection.sec_per_it_low = 16.0;
  projected.projection.sec_per_it_high = 64.0;
  const Picture bars = throughput_picture({RunView(measured), RunView(projected)});
  ASSERT_EQ(bars.panels[0].curves.size(), 2U);
  const Curve& band = bars.panels[0].curves[0];
  EXPECT_EQ(band.name, "80 % band");
  EXPECT_EQ(band.marks[0].low, 200.0);
  EXPECT_EQ(band.marks[0].high, 800.0);
  EXPECT_TRUE(has(band.marks[0].tip, "400.0 tokens/s (200.0 to 800.0, 80 % band)"))
      << band.marks[0].tip;
  EXPECT_EQ(bars.panels[0].curves[1].name, "range over steps");
  Record more = projected;
  more.summary.world_size = 4;
  EXPECT_TRUE(has(throughput_picture({RunView(measured), RunView(more)}).notes[0],
                  "its error bar spans the timed steps, of a projection the 80 % band."));
  EXPECT_TRUE(
      has(report_page({RunView(projected)}), "<small>80 % band 16.00 s to 64.00 s</small>"));
}

// A peak that is exceeded is drawn, along the axis that shows MFU.
TEST(Plots, UtilisationBesideItsPeak) {
  Record a = on(1, 250), b = on(2, 500);
  a.summary.peak.tflops = 1.0;
  EXPECT_TRUE(utilisation_picture({RunView(a), RunView(b)}).panels[0].rules.empty());
  a.summary.peak.tflops = 1e-3;
  for (const Record* other : {&a, &b}) {
    const Picture picture = utilisation_picture({RunView(a), RunView(*other)});
    ASSERT_EQ(picture.panels[0].rules.size(), 1U);
    EXPECT_EQ(picture.panels[0].rules[0].at, 100.0);
    EXPECT_EQ(picture.panels[0].rules[0].vertical, other == &a);
  }
}

// Peaks that are known, each once.
TEST(Plots, PeaksOfAPictureOfUtilisation) {
  Record a = on(1, 250), b = on(2, 500), none = on(4, 900);
  for (Record* each : {&a, &b}) each->summary.peak.tflops = 1.0;
  none.summary.peak.tflops = 0.0;
  EXPECT_EQ(utilisation_picture({RunView(a), RunView(b), RunView(none)}).notes.back(),
            "Peak per device: 1 TFLOP/s (measured GEMM ceiling).");
}

// MFU is of the model's FLOPs, in pictures and on pages; 1e12 of them in 2 s on two devices of
// 1 TFLOP/s are 25 %.
TEST(Plots, UtilisationIsOfModelFlops) {
  Record r = on(2, 500);
  r.summary.flops.convention = "causal";
  for (auto& each : r.summary.flops.per_step) each.second = 1e12;
  r.summary.flops.hardware_factor = 1.25;
  r.summary.rate.sec_per_it = 2.0;
  r.summary.peak.tflops = 1.0;
  Record slower = r;
  slower.summary.world_size = 4;
  const Picture picture = utilisation_picture({RunView(r), RunView(slower)});
  EXPECT_NEAR(picture.panels[0].curves[0].marks[0].y, 25.0, 1e-9);
  const std::string page = report_page({RunView(r)});
  const size_t card = page.find("<dt>MFU</dt>");
  ASSERT_NE(card, std::string::npos);
  EXPECT_TRUE(has(page.substr(card, 80), "25.0 %")) << page.substr(card, 80);
}

// A step that takes much longer than the others needs a logarithmic axis.
TEST(Plots, AxisOfStepTimes) {
  Record r = made_record();
  r.steps.time_s = {1.0, 1.0, 20.0, 1.0};
  EXPECT_FALSE(steps_picture({RunView(r)}).panels[0].y.logarithmic);
  EXPECT_TRUE(steps_picture({RunView(r)}).panels[0].y.from_zero);
  r.steps.time_s[2] = 21.0;
  EXPECT_TRUE(steps_picture({RunView(r)}).panels[0].y.logarithmic);
}

// The file beside a picture: a heading and a row per mark, cells between tabs.
TEST(Plots, DataFileOfAPicture) {
  const std::string directory = testing::TempDir() + "gptbench_plot_data";
  std::filesystem::remove_all(directory);
  const Record a = on(1, 250), b = on(2, 500);
  draw_plots({RunView(a), RunView(b)}, "throughput", directory);
  std::ifstream file(directory + "/throughput.dat");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (line.rfind('#', 0) != 0) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].rfind("series\tx\t", 0), 0U) << lines[0];
  for (const std::string& line : lines)
    EXPECT_EQ(std::count(line.begin(), line.end(), '\t'),
              std::count(lines[0].begin(), lines[0].end(), '\t'))
        << line;
  std::filesystem::remove_all(directory);
}

// Columns of the data of a picture, and one of its rows.
std::string columns_of(const Picture& picture) {
  const Table table = data_of(picture);
  std::string text;
  for (const Column& column : table.columns) text += column.heading + " ";
  return text;
}
std::string row_of(const Picture& picture, size_t row) {
  const Table table = data_of(picture);
  std::string text;
  for (const std::string& cell : table.rows.at(row)) text += cell + "|";
  return text;
}

// A heat map has a value at a place, not a width.
TEST(Plots, DataOfHeatMaps) {
  Record r = made_record();
  r.steps.warmup_steps = 0;
  r.steps.skipped.clear();
  r.timing = {{"step", "s", "", {2, 3}, 1, 2, false}};
  r.provenance.hostnames = {"node", "node"};
  const Picture ranks = ranks_picture({RunView(r)});
  EXPECT_EQ(columns_of(ranks), "series x y value meaning ");
  EXPECT_EQ(row_of(ranks, 1), "node|1|node|3|rank 1 on node: 3.000 s, 100.0 % of the slowest|");
  std::vector<Record> records;
  for (const int64_t stage : {0, 1, 2})
    for (const int64_t batch : {1, 2}) {
      records.push_back(on(2, 100.0 * static_cast<double>(stage + batch)));
      set_key(records.back(), "parallel", "zero_stage", stage);
      set_key(records.back(), "batch", "micro_batch_size", batch);
    }
  records[5].outcome.status = "OOM";
  Runs runs;
  for (const Record& record : records) runs.emplace_back(record);
  const Picture sweep = sweep_picture(runs);
  EXPECT_EQ(row_of(sweep, 4).rfind("zero_stage 1|1|2|300|", 0), 0U) << row_of(sweep, 4);
  EXPECT_EQ(row_of(sweep, 5).rfind("zero_stage 2|2|2||", 0), 0U) << row_of(sweep, 5);
}

// Where a picture has several panels, each row names the one that it belongs to.
TEST(Plots, DataOfSeveralPanels) {
  const Record one = on(1, 250), four = on(4, 800);
  const Picture scaling = scaling_picture({RunView(four), RunView(one)});
  EXPECT_EQ(columns_of(scaling), "panel series x y low high meaning ");
  EXPECT_EQ(row_of(scaling, 0).rfind("Speed-up|ideal|1|1|", 0), 0U);
  EXPECT_EQ(data_of(scaling).rows.back()[0], "Efficiency (%)");
  const Picture messages = messages_picture({RunView(one)});
  ASSERT_EQ(messages.panels.size(), 2U);
  EXPECT_EQ(data_of(messages).rows.front()[0], messages.panels[0].x.label);
  EXPECT_EQ(columns_of(throughput_picture({RunView(four), RunView(one)})),
            "series x y low high meaning ");
}

// Of many ranks a series has its minima, means, maxima and values of the slowest step.
TEST(Plots, BreakdownOfMaximaOverRanks) {
  Record r = made_record();
  r.steps.warmup_steps = 0;
  r.steps.skipped = {0};
  r.summary.world_size = 1000;
  r.timing = {{"step", "s", "", {10, 11, 12, 13}, 1, 4, true},
              {"region_linear", "s", "", {3, 4, 7, 1}, 1, 4, true}};
  const Picture picture = breakdown_picture({RunView(r)});
  EXPECT_TRUE(has(bars_of(picture), ", maxima over ranks: linear 7,")) << bars_of(picture);
  EXPECT_EQ(picture.panels[0].y.ticks.size(), 1U);
  // Messages are sums over ranks, drawn as their mean: 2,000 s of 1,000 ranks.
  r.timing.push_back({"communication", "s", "", {1, 2, 5, 3}, 1, 4, true});
  r.summary.timed_steps = 1;
  r.comm = {{"pipeline", "send", {1}, {1}, {0}, {0}, {2000.0}, true}};
  const std::string bars = bars_of(breakdown_picture({RunView(r)}));
  EXPECT_TRUE(has(bars, " linear 7, pipeline wait (bubble) 2, communication 3,")) << bars;
}

TEST(Plots, ScalingNeedsTwoNumbersOfRanks) {
  const Record one = on(1, 250), four = on(4, 800);
  EXPECT_TRUE(scaling_picture({RunView(one)}).empty());
  const Picture picture = scaling_picture({RunView(four), RunView(one)});
  EXPECT_EQ(curves_of(picture), "ideal: (1 1) (4 4)\n: (1 1) (4 3)\n");
  EXPECT_EQ(curves_of(picture, 1), ": (1 100) (4 80)\n");
  // A series on one number of ranks is named.
  Record sharded = on(4, 600);
  set_key(sharded, "parallel", "zero_stage", int64_t{3});
  EXPECT_TRUE(
      has(scaling_picture({RunView(four), RunView(one), RunView(sharded)}).notes.back(), "ZeRO 3"));
}

TEST(Plots, PublishedPointsStandBesideMeasuredOnes) {
  const Record one = on(1, 250), four = on(4, 800);
  const PublishedCells cells;
  Record two, eight;
  two.config = eight.config = {{"run", "name", std::string("2.0 GHz"), "1", ""}};
  two.outcome.status = eight.outcome.status = "OK";
  two.summary.world_size = 2;
  two.summary.rate.tokens_per_s = 100;
  eight.summary.world_size = 8;
  eight.summary.rate.tokens_per_s = 300;
  const RunView point_a(eight, {}, &cells), point_b(two, {}, &cells);
  const Picture picture = scaling_picture({RunView(one), RunView(four), point_a, point_b});
  EXPECT_TRUE(has(curves_of(picture), "published: 2.0 GHz: (2 1) (8 3)\n")) << curves_of(picture);
  for (const Curve& curve : picture.panels[1].curves)
    EXPECT_EQ(curve.line, !has(curve.name, "published"));
}

// A bar is one rank's, that with the most in all classes together.
TEST(Plots, MemoryStandsByClassWithItsLimit) {
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

// Runs of one name are told apart by what differs, then by a number.
TEST(Plots, LabelsOfRunsOfOneName) {
  Record a = on(2, 300), b = on(2, 400), c = on(2, 500);
  set_key(c, "precision", "compute", std::string("bf16"));
  EXPECT_EQ(labels_of({RunView(a), RunView(b), RunView(c)}),
            (std::vector<std::string>{"made, 2 ranks, fp32", "made, 2 ranks, fp32 (2)",
                                      "made, 2 ranks, bf16"}));
  for (const char* const key : {"tensor_parallel", "pipeline_parallel", "context_parallel"})
    set_key(a, "parallel", key, int64_t{2});
  EXPECT_EQ(
      labels_of({RunView(a), RunView(b)}),
      (std::vector<std::string>{"made, 2 ranks, tp2 pp2 cp2", "made, 2 ranks, data parallel"}));
}

// The page of several runs names the best one, where there is one.
TEST(Plots, HighestThroughputOfAReport) {
  Record a = on(2, 300), b = on(2, 400);
  EXPECT_NE(report_page({RunView(a), RunView(b)}).find("Highest throughput"), std::string::npos);
  // Of runs that are as fast the first, whose name is not the second's.
  b.summary.rate.tokens_per_s = 300;
  set_key(b, "precision", "compute", std::string("bf16"));
  const std::string page = report_page({RunView(a), RunView(b)});
  const size_t card = page.find("Highest throughput");
  EXPECT_TRUE(has(page.substr(card, 200), "fp32")) << page.substr(card, 200);
  const auto tflops = [](double value) { return "<dd>" + significant(value, 4, 4) + " TFLOP/s<"; };
  const double total = 2.0 * RunView(a).rates().tflops(RunView(a).rates().convention());
  EXPECT_TRUE(has(page, tflops(total))) << tflops(total);
  // A projection is no record, however high.
  Record projected = on(2, 9000);
  projected.projection.machine = "h100";
  const std::string with_projection = report_page({RunView(a), RunView(projected)});
  EXPECT_TRUE(has(with_projection, "<dd>300 tokens/s<")) << with_projection;
  EXPECT_FALSE(has(with_projection, "<dd>9,000 tokens/s<"));
  // Tokens of another model are others, its FLOPs are not.
  Record other = a;
  set_key(other, "model", "preset", std::string("gpt2-345m"));
  const std::string unlike = report_page({RunView(a), RunView(other)});
  EXPECT_FALSE(has(unlike, "Highest throughput"));
  EXPECT_TRUE(has(unlike, "Highest in total"));
  for (Record* const failed : {&a, &b}) {
    failed->outcome.status = "OOM";
    failed->outcome.verdict = "NOT VERIFIED";
  }
  EXPECT_EQ(report_page({RunView(a), RunView(b)}).find("Highest throughput"), std::string::npos);
}

// A sum over ranks is drawn as their mean: 200 MiB of two ranks.
TEST(Plots, MemoryThatIsASumOverRanks) {
  Record r = made_record();
  r.memory = {{"parameters", "", {200 << 20}, true}, {"device_used", "", {300 << 20}, true}};
  EXPECT_EQ(bars_of(memory_picture({RunView(r)})), "made, 2 ranks: parameters 100,\n");
}

// One bar per rank, with waiting for pipeline messages apart from other communication.
TEST(Plots, BreakdownOfEachRank) {
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
TEST(Plots, BreakdownAddsUpToTheStep) {
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
TEST(Plots, BreakdownOfManyRanks) {
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

TEST(Plots, LossCountsStepsFromOneAndDrawsEqualCurvesOnce) {
  Record a = made_record(), b = made_record(), c = made_record();
  set_key(a, "model", "vocab_size", int64_t{50257});
  set_key(b, "model", "vocab_size", int64_t{50257});
  set_key(c, "model", "vocab_size", int64_t{50257});
  b.steps.loss[1] += 1e-4;
  c.steps.loss[3] = 12.0;
  const Picture picture = loss_picture({RunView(a), RunView(b), RunView(c)});
  EXPECT_EQ(curves_of(picture),
            "made, 2 ranks: (1 11) (2 11) (3 10) (4 10)\n"
            "made, 2 ranks (3): (1 11) (2 11) (3 10) (4 12)\n");
  EXPECT_EQ(picture.legend[0].name, "made, 2 ranks and 1 more (largest difference 1.0e-04)");
  ASSERT_EQ(picture.panels[0].rules.size(), 2U);
  EXPECT_EQ(picture.panels[0].rules[0].at, 9.5);
  EXPECT_EQ(picture.panels[0].rules[0].label, "entropy of the tokens = 9.500");
  EXPECT_NEAR(picture.panels[0].rules[1].at, std::log(50257.0), 1e-12);
  EXPECT_TRUE(has(picture.panels[0].rules[1].label, "ln V = 10.825"));
  // A run that ended earlier is the longer one's curve as far as it goes, in any order.
  Record ended = a;
  ended.steps.loss.resize(2);
  EXPECT_EQ(curves_of(loss_picture({RunView(ended), RunView(c), RunView(a)})),
            "made, 2 ranks (2): (1 11) (2 11) (3 10) (4 12)\n"
            "made, 2 ranks (3): (1 11) (2 11) (3 10) (4 10)\n");
  // A run whose loss is no number is another curve, unless both have none there.
  Record lost = a;
  lost.steps.loss[2] = NAN;
  EXPECT_EQ(loss_picture({RunView(a), RunView(lost)}).panels[0].curves.size(), 2U);
  EXPECT_EQ(loss_picture({RunView(lost), RunView(lost)}).panels[0].curves.size(), 1U);
  // Runs of other tokens have no floor in common; a single run shows its held-out losses.
  a.summary.convergence.token_entropy = 8.0;
  EXPECT_EQ(loss_picture({RunView(a), RunView(b)}).panels[0].rules.size(), 1U);
  EXPECT_TRUE(has(curves_of(loss_picture({RunView(a)})), "held out: (2 10) (4 10)\n"));
}

// Thousands of steps are means of as many each, which span them.
TEST(Plots, ManyStepsAreBinned) {
  Record r = made_record();
  r.steps.time_s.clear();
  for (int step = 0; step < 1200; ++step) r.steps.time_s.push_back(step % 10 == 0 ? 2.0 : 1.0);
  const Picture picture = steps_picture({RunView(r)});
  ASSERT_EQ(picture.panels[0].curves[0].marks.size(), 120U);
  const Mark& mark = picture.panels[0].curves[0].marks[0];
  EXPECT_DOUBLE_EQ(mark.x, 5.5);
  EXPECT_DOUBLE_EQ(mark.y, 1.1);
  EXPECT_DOUBLE_EQ(mark.low, 1.0);
  EXPECT_DOUBLE_EQ(mark.high, 2.0);
  EXPECT_EQ(picture.panels[0].rules[0].at, 1.5);  // after the warm-up step
}

// Steps of a run that continues another have the numbers that they have in steps.csv.
TEST(Plots, StepsOfAResumedRunGoOnCounting) {
  Record r = made_record(), first = r;
  r.summary.resumed.steps = 100;
  r.steps.held_out_step = {102};
  r.steps.held_out_loss = {10.0};
  const Picture loss = loss_picture({RunView(r)});
  EXPECT_TRUE(has(curves_of(loss), ": (101 11) (102 11) (103 10) (104 10)\n")) << curves_of(loss);
  EXPECT_TRUE(has(curves_of(loss), "held out: (102 10)\n")) << curves_of(loss);
  EXPECT_TRUE(has(loss.panels[0].curves[0].marks[0].tip, "step 101: "));
  const Picture steps = steps_picture({RunView(r)});
  EXPECT_EQ(steps.panels[0].curves[0].marks[0].x, 101.0);
  EXPECT_EQ(steps.panels[0].rules[0].at, 101.5);
  // The same losses after other steps are another curve; there is no one end of the warm-up.
  EXPECT_EQ(loss_picture({RunView(first), RunView(r)}).panels[0].curves.size(), 2U);
  EXPECT_TRUE(steps_picture({RunView(first), RunView(r)}).panels[0].rules.empty());
}

// Seconds of a short run; shares of time begin at 0.
TEST(Plots, AxesOfSensors) {
  Record r = made_record();
  r.sensors = {};
  r.sensors.interval_s = 1.0;
  r.sensors.utilisation.assign(8, 0.999);
  const Picture seconds = sensors_picture({RunView(r)});
  ASSERT_EQ(seconds.panels.size(), 1U);
  EXPECT_EQ(seconds.panels[0].x.label, "Time (s)");
  EXPECT_TRUE(seconds.panels[0].y.from_zero);
  EXPECT_EQ(seconds.panels[0].curves[0].marks.back().x, 7.5);
  r.sensors.interval_s = 15.0;
  EXPECT_EQ(sensors_picture({RunView(r)}).panels[0].x.label, "Time (min)");
  EXPECT_EQ(sensors_picture({RunView(r)}).panels[0].curves[0].marks.back().x, 7.5 / 4.0);
}

// Runs shorter than an interval have one value each, which all stood at one place.
TEST(Plots, SensorsOfShortRunsAreBars) {
  Record a = made_record(), b = made_record();
  for (Record* each : {&a, &b}) {
    each->sensors = {};
    each->sensors.interval_s = 1.0;
    each->sensors.clock_ghz = {2.0};
    each->sensors.power_w = {NAN};
  }
  const Picture picture = sensors_picture({RunView(a), RunView(b)});
  ASSERT_EQ(picture.panels.size(), 1U);
  EXPECT_EQ(bars_of(picture),
            "made, 2 ranks: made, 2 ranks 2,\nmade, 2 ranks (2): made, 2 ranks (2) 2,\n");
  EXPECT_EQ(picture.panels[0].x.label, "Clock (GHz)");
  EXPECT_EQ(picture.panels[0].boxes[0].behind, "2");
  // Beside a longer one they are marks over time, which begins at 0.
  b.sensors.clock_ghz = {2.0, 2.1};
  const Picture over_time = sensors_picture({RunView(a), RunView(b)});
  EXPECT_EQ(over_time.panels.at(0).x.label, "Time (s)");
  EXPECT_TRUE(over_time.panels[0].x.from_zero);
}

TEST(Plots, MessagesPerStep) {
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
TEST(Plots, OperationsKeepTheirStyle) {
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

TEST(Plots, BuffersThatShareBytesLieBelowEachOther) {
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

TEST(Plots, RanksStandByHost) {
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
TEST(Plots, RanksOfReducedSeries) {
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
TEST(Plots, RooflineOfThePlan) {
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

TEST(Plots, SweepOverTwoKeys) {
  std::vector<Record> records;
  for (const int64_t stage : {0, 3})
    for (const int64_t batch : {1, 2}) {
      records.push_back(on(2, 100.0 * static_cast<double>(1 + batch + stage)));
      set_key(records.back(), "parallel", "zero_stage", stage);
      set_key(records.back(), "batch", "micro_batch_size", batch);
    }
  records[3].outcome.status = "OOM";
  Runs runs;
  for (const Record& record : records) runs.emplace_back(record);
  const Picture picture = sweep_picture(runs);
  ASSERT_EQ(picture.panels.size(), 1U);
  ASSERT_EQ(picture.panels[0].boxes.size(), 4U);
  EXPECT_EQ(picture.panels[0].boxes[0].inside, "200.0");
  EXPECT_EQ(picture.panels[0].boxes[3].inside, "OOM");
  EXPECT_EQ(picture.panels[0].boxes[3].style, hatched);
  // A cell whose runs ended differently has the figure of one, and is marked.
  Record stopped = records[0];
  stopped.outcome.status = "TIMEOUT";
  runs.emplace_back(stopped);
  const Picture both = sweep_picture(runs);
  ASSERT_EQ(both.panels[0].boxes.size(), 5U);
  EXPECT_EQ(both.panels[0].boxes[0].inside, "200.0");
  EXPECT_EQ(both.panels[0].boxes[1].style, hatched);
  EXPECT_EQ(both.panels[0].boxes[1].left, both.panels[0].boxes[0].left);
  EXPECT_TRUE(has(both.notes.back(), "Hatched"));
}

// Names and folders of runs are no keys of a sweep; a ninth panel is one too many.
TEST(Plots, SweepOverThreeKeys) {
  std::vector<Record> records;
  for (int64_t heads = 1; heads <= 9; ++heads)
    for (const int64_t stage : {0, 3})
      for (int64_t batch = 1; batch <= 9; ++batch) {
        records.push_back(on(2, 100.0));
        set_key(records.back(), "model", "num_attention_heads", heads);
        set_key(records.back(), "parallel", "zero_stage", stage);
        set_key(records.back(), "batch", "micro_batch_size", batch);
        set_key(records.back(), "run", "name", "row " + std::to_string(records.size()));
        set_key(records.back(), "output", "directory", "row " + std::to_string(records.size()));
      }
  const auto panels_of = [&](int64_t max_heads, int64_t max_batch) {
    Runs runs;
    for (const Record& record : records) {
      const RunView run(record);
      if (run.deck().integer("model", "num_attention_heads", 0) <= max_heads &&
          run.deck().integer("batch", "micro_batch_size", 0) <= max_batch)
        runs.push_back(run);
    }
    return sweep_picture(runs).panels.size();
  };
  EXPECT_EQ(panels_of(9, 9), 2U);
  EXPECT_EQ(panels_of(3, 2), 2U);
  std::vector<Record> deep;
  for (int64_t layers = 1; layers <= 9; ++layers)
    for (const Record& record : records) {
      deep.push_back(record);
      set_key(deep.back(), "parallel", "zero_stage", layers);
    }
  Runs nine;
  for (const Record& record : deep) nine.emplace_back(record);
  EXPECT_TRUE(sweep_picture(nine).empty());
  EXPECT_TRUE(has(sweep_picture(nine).notes.front(), "zero_stage (9 values)"));
}

// A limit of memory is a key of the sweep where no other key tells the runs apart.
TEST(Plots, SweepOverLimitsOfMemory) {
  std::vector<Record> records;
  for (const double limit_gib : {16.0, 32.0})
    for (const int64_t batch : {1, 2}) {
      records.push_back(on(2, 100.0));
      set_key(records.back(), "memory", "device_memory_gib", limit_gib);
      set_key(records.back(), "batch", "micro_batch_size", batch);
    }
  Runs runs;
  for (const Record& record : records) runs.emplace_back(record);
  const Picture picture = sweep_picture(runs);
  ASSERT_EQ(picture.panels.size(), 1U);
  EXPECT_EQ(picture.panels[0].boxes.size(), 4U);
  // Where it follows from another one, it is none.
  for (size_t r = 0; r < records.size(); ++r)
    set_key(records[r], "memory", "device_memory_gib", r % 2 == 0 ? 16.0 : 32.0);
  EXPECT_TRUE(sweep_picture(runs).empty());
}

// Positions that are learned make the number of parameters follow from the length.
TEST(Plots, OneModelOverItsLengths) {
  std::vector<Record> records;
  for (const int64_t length : {128, 256}) {
    records.push_back(on(2, 100.0));
    records.back().summary.num_params = 1000000 + 64 * length;
    set_key(records.back(), "model", "preset", "");
    set_key(records.back(), "model", "seq_length", length);
  }
  const Picture picture =
      throughput_picture({RunView(records[0]), RunView(records[1])}, {"length"});
  ASSERT_EQ(picture.panels[0].curves.size(), 1U);
  EXPECT_EQ(picture.panels[0].curves[0].marks.size(), 2U);
}

// Deck keys on a page: what was set, with values of several lines as a whole.
TEST(Plots, KeysOfAReport) {
  Record r = made_record();
  r.provenance.deck_resolved =
      "&run\n  name = 'a long\nname'      ! command line\n  steps = 4    ! default\n"
      "  seed = 5          ! command line\n/\n"
      "&model\n  num_layers = 2\n/\n";
  const std::string page = report_page({RunView(r)});
  EXPECT_TRUE(has(page,
                  "&amp;run\n  name = &#39;a long\nname&#39;      ! command line\n"
                  "  seed = 5 ! command line\n\n"
                  "&amp;model\n  num_layers = 2\n"))
      << page.substr(page.find("&amp;run") == std::string::npos ? 0 : page.find("&amp;run"), 300);
}

// A table of a thousand figures is none that is read.
TEST(Plots, LongTablesOfAReportAreFiles) {
  Record r = made_record();
  r.arena.clear();
  for (int64_t i = 0; i < 301; ++i)
    r.arena.push_back({"h." + std::to_string(i), "activations", "f32", i * 256, 256, "run"});
  const std::string page = report_page({RunView(r)});
  EXPECT_TRUE(has(page,
                  "<p class=\"soft\">301 marks; gptpost plot --kind memory_map writes them to "
                  "a file.</p>"))
      << page.substr(page.find(" marks") - std::min<size_t>(80, page.find(" marks")), 100);
}

constexpr const char* trace_text =
    R"json({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 (tensor 0, context 0, pipeline 0, data 0)"}},
{"ph":"M","name":"process_name","pid":1,"args":{"name":"rank 1 (tensor 0, context 0, pipeline 1, data 0)"}},
{"ph":"M","name":"thread_name","pid":0,"tid":5,"args":{"name":"send_forward"}},
{"ph":"M","name":"thread_name","pid":0,"tid":6,"args":{"name":"receive_forward"}},
{"ph":"X","name":"linear","cat":"linear","pid":0,"tid":0,"ts":10,"dur":30,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"norm","cat":"layernorm","pid":0,"tid":0,"ts":40,"dur":8,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"issue pipeline send","cat":"issue","pid":0,"tid":0,"ts":48,"dur":2,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"wait","cat":"wait","pid":0,"tid":0,"ts":50,"dur":20,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"linear","cat":"linear","pid":0,"tid":0,"ts":70,"dur":30,"args":{"program":"backward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"wait","cat":"wait","pid":0,"tid":0,"ts":100,"dur":0.01,"args":{"program":"backward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"pipeline send","cat":"communication","pid":0,"tid":5,"ts":50,"dur":10,"args":{"program":"forward","micro_batch":0,"bytes":64}},
{"ph":"X","name":"pipeline receive","cat":"communication","pid":1,"tid":6,"ts":20,"dur":45,"args":{"program":"forward","micro_batch":0,"bytes":64}}
]})json";

TEST(Plots, TimelineOfATrace) {
  const std::string directory = testing::TempDir() + "gptbench_plot_trace";
  std::ignore = std::system(("mkdir -p " + directory).c_str());
  std::ofstream(directory + "/trace.json") << trace_text;
  const Record r = made_record();
  const Picture picture = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  ASSERT_EQ(picture.panels.size(), 1U);
  const Panel& panel = picture.panels[0];
  EXPECT_EQ(panel.y.ticks[0].second, "rank 0, stage 0, 68 % computing");
  std::string boxes;
  for (const Box& box : panel.boxes)
    boxes += box.name + " " + std::to_string(std::lround(box.left)) + "-" +
             std::to_string(std::lround(box.right)) + "\n";
  EXPECT_EQ(boxes,
            "forward 10-50\nwaiting 50-70\nmessage in flight 50-60\nbackward 70-100\n"
            "message in flight 20-65\n");
  EXPECT_EQ(panel.boxes[2].tip.rfind("pipeline send, micro-batch 1, 64 B", 0), 0U)
      << panel.boxes[2].tip;
  EXPECT_EQ(panel.boxes[2].inside, "");
  // A message is drawn below the passes of its rank.
  EXPECT_EQ(data_of(picture).rows.at(2)[0], "message in flight");
  EXPECT_EQ(data_of(picture).rows.at(2)[2], panel.y.ticks[0].second);
  ASSERT_EQ(panel.arrows.size(), 1U);
  EXPECT_EQ(panel.arrows[0].from_x, 50.0);
  EXPECT_EQ(panel.arrows[0].to_x, 65.0);
  // The ranks of a projected trace are called so.
  std::string projected = trace_text;
  for (size_t at = 0; (at = projected.find("\"rank ", at)) != std::string::npos; at += 10)
    projected.insert(at + 1, "projected ");
  std::ofstream(directory + "/trace.json") << projected;
  const Picture of_projection =
      timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  EXPECT_EQ(of_projection.panels.at(0).arrows.size(), 1U);
  EXPECT_EQ(of_projection.panels[0].y.ticks[0].second, "rank 0, stage 0, 68 % computing");
  // Interleaved schedules send from the last stage to the first, too.
  std::string around = trace_text;
  around.replace(around.rfind("\n]}"), 1, R"json(,
{"ph":"X","name":"pipeline send","cat":"communication","pid":1,"tid":5,"ts":70,"dur":5,"args":{"program":"forward","micro_batch":0,"bytes":64}},
{"ph":"X","name":"pipeline receive","cat":"communication","pid":0,"tid":6,"ts":60,"dur":20,"args":{"program":"forward","micro_batch":0,"bytes":64}}
)json");
  std::ofstream(directory + "/trace.json") << around;
  const Picture ring = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  ASSERT_EQ(ring.panels.at(0).arrows.size(), 2U);
  EXPECT_EQ(ring.panels[0].arrows[1].from_x, 70.0);
  EXPECT_EQ(ring.panels[0].arrows[1].to_x, 80.0);
  // A result that a later run moved aside has no trace.
  EXPECT_TRUE(timeline_picture({RunView(r, {}, nullptr, directory + "/result.1.h5")}).empty());
  // Nor has one of a run that traced no step, or ended before that step: another left the file.
  for (const int64_t step : {int64_t{0}, int64_t{5}}) {
    Record other = r;
    set_key(other, "output", "trace_step", step);
    EXPECT_TRUE(timeline_picture({RunView(other, {}, nullptr, directory + "/result.h5")}).empty());
  }
}

// Every program of a micro-batch is a pass, that of the last one included; numbers are of passes.
TEST(Plots, ProgramsOfATimeline) {
  const std::string directory = testing::TempDir() + "gptbench_plot_programs";
  std::filesystem::create_directories(directory);
  std::string text =
      R"json({"traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 (tensor 0, context 0, pipeline 0, data 0)"}},
{"ph":"M","name":"process_labels","pid":0,"args":{"labels":"3 of 128 micro-batches"}})json";
  int begin = 0;
  for (int kind = 0; kind <= static_cast<int>(ProgramKind::end_step); ++kind) {
    const std::string name = name_of(static_cast<ProgramKind>(kind));
    const bool is_pass = name.find("step") == std::string::npos;
    text += printed(
        ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"linear\",\"pid\":0,\"tid\":0,\"ts\":%d,"
        "\"dur\":100,\"args\":{\"program\":\"%s\",\"micro_batch\":%d}}",
        name.c_str(), begin, name.c_str(), is_pass ? 2 : -1);
    begin += 100;
  }
  std::ofstream(directory + "/trace.json") << text << "\n]}";
  const Record r = made_record();
  const Picture picture = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  std::string boxes;
  for (const Box& box : picture.panels.at(0).boxes) boxes += box.name + " " + box.inside + "\n";
  EXPECT_EQ(picture.title, "Timeline of one step: 3 of 128 micro-batches");
  EXPECT_EQ(boxes,
            "begin and end of the step \nforward F3\nbackward B3\nforward F3\nbackward B3\n"
            "backward B3\nweight gradients W3\nweight gradients W3\nbegin and end of the step \n");
  std::filesystem::remove_all(directory);
}

// Forwards from a stage to the next, backwards to the one before; a ring of three has both.
TEST(Plots, ArrowsBetweenThreeStages) {
  const std::string directory = testing::TempDir() + "gptbench_plot_ring";
  std::filesystem::create_directories(directory);
  std::string text = "{\"traceEvents\":[";
  const auto span = [&](int rank, const char* lane, int thread, int begin) {
    const std::string pid = "\"pid\":" + std::to_string(rank), number = std::to_string(thread);
    text += "\n{\"ph\":\"M\",\"name\":\"thread_name\"," + pid + ",\"tid\":" + number +
            ",\"args\":{\"name\":\"" + lane +
            "\"}},\n{\"ph\":\"X\",\"name\":\"message\",\"cat\":\"communication\"," + pid +
            ",\"tid\":" + number + ",\"ts\":" + std::to_string(begin) +
            ",\"dur\":5,\"args\":{\"program\":\"forward\",\"micro_batch\":0,\"bytes\":64}},";
  };
  for (int rank = 0; rank < 3; ++rank) {
    const std::string number = std::to_string(rank);
    text += "\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + number +
            ",\"args\":{\"name\":\"rank " + number + " (tensor 0, context 0, pipeline " + number +
            ", data 0)\"}},";
  }
  span(0, "send_forward", 1, 10);
  span(1, "receive_forward", 2, 11);
  span(2, "send_backward", 3, 30);
  span(1, "receive_backward", 4, 31);
  text.back() = '\n';
  std::ofstream(directory + "/trace.json") << text << "]}";
  const Record r = made_record();
  const Picture picture = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  ASSERT_EQ(picture.panels.size(), 1U);
  ASSERT_EQ(picture.panels[0].arrows.size(), 2U);
  EXPECT_EQ(picture.panels[0].arrows[0].from_x, 10.0);
  EXPECT_EQ(picture.panels[0].arrows[0].to_x, 16.0);
  EXPECT_EQ(picture.panels[0].arrows[1].from_x, 30.0);
  EXPECT_EQ(picture.panels[0].arrows[1].to_x, 36.0);
  std::filesystem::remove_all(directory);
}

// Five stages of eight ranks: 32 rows hold one of each, and the first 27 others.
TEST(Plots, ATimelineHasARowForEachStage) {
  const std::string directory = testing::TempDir() + "gptbench_plot_stages";
  std::filesystem::create_directories(directory);
  std::string text = "{\"traceEvents\":[";
  for (int rank = 0; rank < 40; ++rank)
    text += printed(
        "\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank %d "
        "(tensor %d, context 0, pipeline %d, data 0)\"}},\n{\"ph\":\"X\",\"name\":\"linear\","
        "\"cat\":\"linear\",\"pid\":%d,\"tid\":0,\"ts\":0,\"dur\":100,\"args\":{\"program\":"
        "\"forward\",\"micro_batch\":0}},",
        rank, rank, rank % 8, rank / 8, rank);
  text.back() = '\n';
  std::ofstream(directory + "/trace.json") << text << "]}";
  const Record r = made_record();
  const Picture picture = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  ASSERT_EQ(picture.panels.size(), 1U);
  const auto& ticks = picture.panels[0].y.ticks;
  ASSERT_EQ(ticks.size(), 32U);
  EXPECT_EQ(ticks[31].second, "rank 32, stage 4, 100 % computing");
  EXPECT_EQ(ticks[30].second, "rank 30, stage 3, 100 % computing");
  EXPECT_EQ(picture.notes.back(), "32 of 40 ranks in the trace, one of each stage first.");
  std::filesystem::remove_all(directory);
}

TEST(Plots, TracesThatAreNoneAreEmpty) {
  for (const char* text : {"", "{", "\n\n", "{\"ph\":\"X\",\"pid\":0,\"ts\":1e400,\"dur\":-1}",
                           "{\"ph\":\"X\",\"pid\":1e99}"})
    EXPECT_TRUE(parse_trace(text).spans.empty()) << text;
}

TEST(Plots, TracesOfLargeMessages) {
  const TraceFile trace = parse_trace(
      "{\"ph\":\"X\",\"name\":\"all_reduce\",\"pid\":0,\"tid\":1,\"ts\":1,\"dur\":2,"
      "\"args\":{\"bytes\":1380000000}}\n");
  ASSERT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.spans[0].bytes, 1'380'000'000);
}

// Files may hold any number; none stops a picture or appears in it as no number.
TEST(Plots, StrangeFigures) {
  for (const double value : {0.0, -1.0, 1e308, 1e-308, 1e17, double(INFINITY), double(NAN)}) {
    Record r = made_record();
    r.steps.loss = {value, 1.0, value};
    r.steps.time_s = {value, value, value, value};
    for (double* figure :
         {&r.summary.rate.tokens_per_s, &r.summary.rate.sec_per_it, &r.summary.rate.sec_per_it_min,
          &r.summary.rate.sec_per_it_max, &r.summary.peak_memory_bytes,
          &r.summary.device.memory_bytes, &r.summary.device.memory_used_bytes})
      *figure = value;
    for (RankSeries& series : r.timing)
      std::fill(series.values.begin(), series.values.end(), value);
    r.timing.push_back({"step", "s", "", {value, value, value, value}, 2, 2, false});
    for (CommEntry& entry : r.comm) entry.exposed_s = entry.time_s = {value, value};
    const int64_t bytes = value > 1e18 ? INT64_MAX : value < 0.0 ? -1 : 0;
    r.memory[0].bytes = {bytes, bytes};
    for (ArenaEntry& buffer : r.arena) buffer.offset_bytes = buffer.bytes = bytes;
    r.summary.timed_steps = r.summary.world_size = bytes;
    Record other = r;
    other.summary.world_size = 2;
    for (const Runs& runs : {Runs{RunView(r)}, Runs{RunView(r), RunView(other)}})
      for (const PlotKind& kind : plot_kinds)
        for (const Picture& picture : pictures_of(kind, runs)) {
          const std::string text = svg_of(picture);
          for (const char* none :
               {"=\"nan", "=\"inf", "=\"-nan", "=\"-inf", "Mnan", "Linf", "Vinf", "nan %"})
            EXPECT_FALSE(has(text, none)) << kind.name << " of " << value << ": " << none;
        }
  }
}

TEST(Plots, NothingToShow) {
  const Record empty;
  for (const PlotKind& kind : plot_kinds) {
    EXPECT_TRUE(kind.make({RunView(empty)}, {}).empty()) << kind.name;
    EXPECT_TRUE(kind.make({}, {}).empty()) << kind.name;
  }
}

}  // namespace
}  // namespace gptbench
