// Pictures of rates over ranks or sequence length: series, error bars, marks and notes.
#include <gtest/gtest.h>

#include "has.h"
#include "made_record.h"
#include "post/naming.h"
#include "post/plot.h"
#include "post/published.h"
#include "post/report.h"
#include "read_picture.h"

namespace gptbench {
namespace {

TEST(RatePictures, ThroughputOverRanksInAscendingOrder) {
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

TEST(RatePictures, ThroughputOverTheSequenceLengthWhereThatVaries) {
  const Record a = on(2, 300, 512), b = on(2, 200, 2048);
  EXPECT_EQ(curves_of(throughput_picture({RunView(a), RunView(b)})), ": (512 300) (2048 200)\n");
  EXPECT_EQ(throughput_picture({RunView(a), RunView(b)}, {"ranks"}).panels[0].boxes.size(), 2U);
  const Record c = on(4, 200, 2048);
  const Picture both = throughput_picture({RunView(a), RunView(c)});
  EXPECT_EQ(both.panels[0].x.label, "Ranks");
}

// Positions that are learned make the number of parameters follow from the length.
TEST(RatePictures, OneModelOverItsLengths) {
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

// No run is left out: repeats are marks of one series, layouts are series of their own.
TEST(RatePictures, EveryRunIsDrawn) {
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

TEST(RatePictures, AnyKeyOfTheLayoutTellsSeriesApart) {
  Record a = on(2, 300), b = on(2, 400);
  set_key(a, "parallel", "pipeline_schedule", std::string("gpipe"));
  set_key(b, "parallel", "pipeline_schedule", std::string("1f1b"));
  set_key(a, "run", "name", std::string("x"));
  const Naming naming = naming_of({RunView(a), RunView(b)}, false);
  EXPECT_EQ(naming.names[0], "pipeline_schedule gpipe");
  EXPECT_EQ(naming.names[1], "pipeline_schedule 1f1b");
}

// Keys of &run that choose another device or library do, too; others do not.
TEST(RatePictures, TheDeviceTellsSeriesApart) {
  Record a = on(2, 300), b = on(2, 400);
  set_key(a, "run", "device", std::string("host"));
  set_key(b, "run", "device", std::string("ref"));
  set_key(a, "run", "seed", int64_t{1});
  set_key(b, "run", "seed", int64_t{2});
  const Naming naming = naming_of({RunView(a), RunView(b)}, false);
  EXPECT_EQ(naming.names[0], "device host");
  EXPECT_EQ(naming.names[1], "device ref");
}

// Runs of one name are told apart by what differs, then by a number.
TEST(RatePictures, LabelsOfRunsOfOneName) {
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

// With one number of ranks there is nothing to draw a line over: a bar per run.
TEST(RatePictures, BarsWhereThereIsOneNumberOfRanks) {
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
TEST(RatePictures, TheBandOfAProjection) {
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
TEST(RatePictures, UtilisationBesideItsPeak) {
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
TEST(RatePictures, PeaksOfAPictureOfUtilisation) {
  Record a = on(1, 250), b = on(2, 500), none = on(4, 900);
  for (Record* each : {&a, &b}) each->summary.peak.tflops = 1.0;
  none.summary.peak.tflops = 0.0;
  EXPECT_EQ(utilisation_picture({RunView(a), RunView(b), RunView(none)}).notes.back(),
            "Peak per device: 1 TFLOP/s (measured GEMM ceiling).");
}

// MFU is of the model's FLOPs, in pictures and on pages; 1e12 of them in 2 s on two devices of
// 1 TFLOP/s are 25 %.
TEST(RatePictures, UtilisationIsOfModelFlops) {
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

TEST(RatePictures, ScalingNeedsTwoNumbersOfRanks) {
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

TEST(RatePictures, PublishedPointsStandBesideMeasuredOnes) {
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

}  // namespace
}  // namespace gptbench
