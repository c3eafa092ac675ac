// Pictures over steps and time: loss, time of steps, sensors.
#include <gtest/gtest.h>

#include <cmath>

#include "has.h"
#include "made_record.h"
#include "post/plot.h"
#include "read_picture.h"

namespace gptbench {
namespace {

TEST(StepPictures, LossCountsStepsFromOneAndDrawsEqualCurvesOnce) {
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

// A step that takes much longer than the others needs a logarithmic axis.
TEST(StepPictures, AxisOfStepTimes) {
  Record r = made_record();
  r.steps.time_s = {1.0, 1.0, 20.0, 1.0};
  EXPECT_FALSE(steps_picture({RunView(r)}).panels[0].y.logarithmic);
  EXPECT_TRUE(steps_picture({RunView(r)}).panels[0].y.from_zero);
  r.steps.time_s[2] = 21.0;
  EXPECT_TRUE(steps_picture({RunView(r)}).panels[0].y.logarithmic);
}

// Thousands of steps are means of as many each, which span them.
TEST(StepPictures, ManyStepsAreBinned) {
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
TEST(StepPictures, StepsOfAResumedRunGoOnCounting) {
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
TEST(StepPictures, AxesOfSensors) {
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
TEST(StepPictures, SensorsOfShortRunsAreBars) {
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

}  // namespace
}  // namespace gptbench
