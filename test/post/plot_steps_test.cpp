// Pictures over steps and time: loss, time of steps, sensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
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
  ASSERT_EQ(picture.notes.size(), 1U);
  EXPECT_EQ(picture.notes[0], "The curve of made, 2 ranks stands also for made, 2 ranks (2).");
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
  // A single run shows its held-out losses.
  EXPECT_TRUE(has(curves_of(loss_picture({RunView(a)})), "held out: (2 10) (4 10)\n"));
}

// Where many runs share a curve, a note names the first of them and counts the others.
TEST(StepPictures, RunsOfOneCurveAreNamed) {
  const Record r = made_record();
  Runs runs(9, RunView(r));
  const std::string first_seven =
      "made, 2 ranks (2); made, 2 ranks (3); made, 2 ranks (4); made, 2 ranks (5); made, 2 ranks "
      "(6); made, 2 ranks (7); made, 2 ranks (8); ";
  EXPECT_EQ(loss_picture(runs).notes.at(0),
            "The curve of made, 2 ranks stands also for " + first_seven + "made, 2 ranks (9).");
  runs.resize(12, RunView(r));
  EXPECT_EQ(loss_picture(runs).notes.at(0),
            "The curve of made, 2 ranks stands also for " + first_seven + "and 4 more.");
  EXPECT_TRUE(loss_picture({RunView(r)}).notes.empty());
}

// "at: label" per line, from the lowest.
std::string rules_of(const Picture& picture) {
  std::string text;
  for (const Rule& rule : picture.panels.at(0).rules)
    text += printed("%.3f: ", rule.at) + rule.label + "\n";
  return text;
}

// A run of a vocabulary; its loss spans the axis.
Record of_vocabulary(int64_t size, const std::string& family, double entropy) {
  Record r = made_record();
  r.steps.loss = {11.0, 8.0, 4.0, 2.0};
  set_key(r, "model", "vocab_size", size);
  set_key(r, "model", "family", family);
  r.summary.convergence.token_entropy.reset();
  if (entropy > 0.0) r.summary.convergence.token_entropy = entropy;
  return r;
}

// The loss of BERT has a second part, of two classes.
TEST(StepPictures, UniformGuessOfBert) {
  const Record bert = of_vocabulary(30522, "bert", 0.0), gpt = of_vocabulary(1000, "gpt", 2.5);
  EXPECT_EQ(rules_of(loss_picture({RunView(bert)})),
            "11.019: ln V + ln 2 = 11.019, a uniform guess of BERT\n");
  EXPECT_EQ(rules_of(loss_picture({RunView(bert), RunView(gpt)})),
            "2.500: entropy of the tokens = 2.500, 1 of 2 runs\n"
            "6.908: ln 1000 = 6.908, a uniform guess, 1 of 2 runs\n"
            "11.019: ln 30522 + ln 2 = 11.019, a uniform guess of BERT, 1 of 2 runs\n");
}

// Runs that differ have a line per value, up to three; beyond, a note says that there is none.
TEST(StepPictures, LinesWhereRunsDiffer) {
  std::vector<Record> records;
  for (const int64_t size : {100, 1000, 30000, 50000})
    records.push_back(of_vocabulary(size, "gpt", size == 100 ? 2.0 : 3.5));
  Runs runs;
  for (size_t r = 0; r < 3; ++r) runs.emplace_back(records[r]);
  const Picture three = loss_picture(runs);
  EXPECT_EQ(rules_of(three),
            "2.000: entropy of the tokens = 2.000, 1 of 3 runs\n"
            "3.500: entropy of the tokens = 3.500, 2 of 3 runs\n"
            "4.605: ln 100 = 4.605, a uniform guess, 1 of 3 runs\n"
            "6.908: ln 1000 = 6.908, a uniform guess, 1 of 3 runs\n"
            "10.309: ln 30000 = 10.309, a uniform guess, 1 of 3 runs\n");
  runs.emplace_back(records[3]);
  const Picture four = loss_picture(runs);
  EXPECT_EQ(rules_of(four),
            "2.000: entropy of the tokens = 2.000, 1 of 4 runs\n"
            "3.500: entropy of the tokens = 3.500, 3 of 4 runs\n");
  EXPECT_EQ(std::count(four.notes.begin(), four.notes.end(),
                       "No line at the loss of a uniform guess, in which runs differ: 4.605 to "
                       "10.820."),
            1);
  // A run without losses has no line; labels that would cover each other are one.
  records[0].steps.loss.clear();
  EXPECT_EQ(rules_of(loss_picture({RunView(records[0]), RunView(records[2]), RunView(records[3])})),
            "3.500: entropy of the tokens = 3.500\n"
            "10.309: \n"
            "10.820: ln 50000 = 10.820, a uniform guess, 1 of 2 runs; ln 30000 = 10.309, a uniform "
            "guess, 1 of 2 runs\n");
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
