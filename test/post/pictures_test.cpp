// Every kind of picture as a whole, byte by byte beside test/post/pictures/NAME.svg, which a
// browser shows. To write them anew after a change that is meant, and look at them:
// GPTBENCH_UPDATE=1 test_post_pictures.
#include <gtest/gtest.h>

#include <cmath>

#include "kept_text.h"
#include "made_runs.h"
#include "post/plot.h"
#include "post/svg.h"

namespace gptbench {
namespace {

void expect_picture(const Picture& picture) {
  expect_as_kept("post/pictures/" + picture.name + ".svg", svg_of(picture, picture_style()));
}

TEST(Pictures, OfAStudy) {
  const std::vector<Record> records = study();
  for (const auto make : {throughput_picture, utilisation_picture, scaling_picture, memory_picture,
                          breakdown_picture, messages_picture, loss_picture, steps_picture})
    expect_picture(make(runs_of(records), {}));
}

TEST(Pictures, OfSensors) {
  Record a = made_record(), b = made_record();
  for (int i = 0; i < 30; ++i) {
    a.sensors.power_w.push_back(65.0 + 0.2 * i);
    b.sensors.clock_ghz.push_back(i == 10 ? NAN : 2.25 - 0.01 * (i % 3));
  }
  b.summary.world_size = 4;
  expect_picture(sensors_picture(runs_of({a, b})));
}

TEST(Pictures, OfASweep) {
  const std::vector<Record> records = length_batch_sweep();
  expect_picture(sweep_picture(runs_of(records)));
}

TEST(Pictures, OfARun) {
  const Record r = run_of_two_stages();
  const RunView run(r, {}, nullptr, folder_of_trace() + "/result.h5");
  for (const auto make : {timeline_picture, memory_map_picture, ranks_picture, roofline_picture})
    expect_picture(make({run}, {}));
}

void expect_picture(Picture picture, const std::string& name) {
  picture.name = name;
  expect_picture(picture);
}

// Limits of two sizes and one out of sight; ranks that differ; more curves than can be told apart.
TEST(Pictures, OfLimitsRangesAndManyCurves) {
  std::vector<Record> records = study();
  for (size_t run = 0; run < records.size(); ++run) {
    const double gib = run < 3 ? 1.5 : run < 5 ? 2.5 : 80.0;
    set_key(records[run], "memory", "device_memory_gib", gib);
    Record& r = records[run];
    r.timing = {{"step", "s", "", {10, 10, 12, 11, 10, 9, 10, 10}, 4, 2, false},
                {"region_linear", "s", "", {4, 5, 4, 6, 4, 5, 4, 6}, 4, 2, false},
                {"communication", "s", "", {3, 1, 3, 2, 3, 1, 3, 2}, 4, 2, false}};
  }
  expect_picture(memory_picture(runs_of(records)), "memory_limits");
  expect_picture(breakdown_picture(runs_of(records)), "breakdown_ranges");
  std::vector<Record> many;
  for (int run = 0; run < 41; ++run) {
    many.push_back(scaled(1, 20.0 + run, 0));
    for (double& loss : many.back().steps.loss) loss += 0.01 * run;
  }
  expect_picture(loss_picture(runs_of(many)), "loss_41_runs");
  many.pop_back();
  EXPECT_TRUE(loss_picture(runs_of(many)).notes.empty());
}

// Many steps are binned; of many ranks some stand for the others.
TEST(Pictures, OfALongRunOfManyRanks) {
  Record r = made_record();
  r.steps.warmup_steps = 1;
  r.steps.loss.clear();
  r.steps.time_s.clear();
  for (int step = 0; step < 3000; ++step) {
    r.steps.loss.push_back(11.0 - 0.002 * step + (step % 7 == 0 ? 0.3 : 0.0));
    r.steps.time_s.push_back(2.0 + 0.001 * (step % 11) + (step == 1500 ? 3.0 : 0.0));
  }
  r.steps.held_out_step = {750, 1500, 2250, 3000};
  r.steps.held_out_loss = {9.7, 8.3, 7.0, 5.9};
  r.summary.convergence.token_entropy = 4.5;
  r.summary.world_size = 40;
  r.timing.clear();
  RankSeries step{"step", "s", "", {}, 1, 40, false},
      linear{"region_linear", "s", "", {}, 1, 40, false},
      waits{"communication", "s", "", {}, 1, 40, false};
  r.provenance.hostnames.clear();
  for (int rank = 0; rank < 40; ++rank) {
    step.values.push_back(10.0);
    linear.values.push_back(6.0 - 0.02 * rank);
    waits.values.push_back(0.05 * rank);
    r.provenance.hostnames.push_back("node" + std::to_string(rank / 8));
  }
  r.timing = {step, linear, waits};
  expect_picture(loss_picture({RunView(r)}, {}), "loss_long");
  expect_picture(steps_picture({RunView(r)}, {}), "steps_long");
  r.steps.warmup_steps = 0;  // the one step of the series is timed
  r.steps.skipped.clear();
  expect_picture(ranks_picture({RunView(r)}, {}), "ranks_many");
  expect_picture(breakdown_picture({RunView(r)}, {}), "breakdown_many");
  for (RankSeries& series : r.timing)
    for (double& value : series.values) value *= 1e-3;
  expect_picture(ranks_picture({RunView(r)}, {}), "ranks_ms");
}

// Data sheets have whole GB/s. That of a processor is not taken, of which a rank may have a part.
TEST(Pictures, RoofOfADataSheet) {
  Record r = run_of_two_stages();
  r.summary.device.name = "NVIDIA Grace";
  r.summary.device.memory_bytes = 480e9;
  EXPECT_TRUE(roofline_picture({RunView(r)}).panels.at(1).rules.empty());
  set_key(r, "run", "device", std::string("cuda"));
  r.summary.device.name = "NVIDIA Grace";
  r.summary.device.memory_bytes = 480e9;
  const Picture picture = roofline_picture({RunView(r)});
  ASSERT_EQ(picture.panels.size(), 2U);
  EXPECT_TRUE(
      std::any_of(picture.panels[0].curves.begin(), picture.panels[0].curves.end(),
                  [](const Curve& curve) { return curve.name == "roof: 384 GB/s, data sheet"; }))
      << picture.panels[0].curves.back().name;
  ASSERT_EQ(picture.panels[1].rules.size(), 1U);
  EXPECT_EQ(picture.panels[1].rules[0].at, 384.0);
  r.summary.device.name = "made device";
  EXPECT_TRUE(roofline_picture({RunView(r)}).panels[1].rules.empty());
}

}  // namespace
}  // namespace gptbench
