// The record of a run, assembled from parts by hand.
#include "run/assemble_record.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "deck/validate.h"
#include "record/flops.h"

namespace gptbench {
namespace {

Deck small_deck() {
  return parse_deck("a.in",
                    "&model num_layers=1 hidden_size=32 num_attention_heads=2 "
                    "seq_length=8 vocab_size=64 / &batch global_batch_size=1 /",
                    {});
}

// A step of warm-up, one that was skipped and two that are timed, of 8 tokens each. Sensors cover
// the three after the warm-up; their 400 J are those of the 16 tokens of the timed ones.
TEST(RunRecord, EnergyIsThatOfTheTimedTokens) {
  const Deck deck = small_deck();
  const Plan plan = make_plan(resolve(deck, 1), 1, 0);
  RunParts parts;
  StepSeries& steps = parts.training.emplace().steps;
  steps.warmup_steps = 1;
  steps.time_s = {9.0, 2.0, 2.0, 2.0};
  steps.skipped = {0, 0, 1, 0};
  SensorSummary& sensors = parts.sensors.emplace();
  sensors.power_w = 20.0;
  sensors.node_power_w = 40.0;
  sensors.energy_j = 400.0;
  const Record planned = planned_record(deck, plan, stage_figures(plan), 1, 1, "");
  const Summary summary = run_record(planned, plan, parts).summary;
  EXPECT_EQ(summary.tokens_per_step, 8);
  EXPECT_EQ(summary.timed_steps, 2);
  EXPECT_DOUBLE_EQ(summary.device.energy_j_per_token.value(), 25.0);
  EXPECT_DOUBLE_EQ(summary.device.power_w.value(), 20.0);
  EXPECT_DOUBLE_EQ(summary.host.power_w.value(), 40.0);
}

// A driver may report a slice of a GPU under the name of the whole.
TEST(RunRecord, ADeviceOfOtherMemoryHasNoPeakOfADataSheet) {
  const Plan plan = make_plan(resolve(small_deck(), 1), 1, 0);
  RunParts parts;
  parts.device.reported = parts.device.name = "NVIDIA H100 80GB HBM3";
  parts.device.memory_bytes = static_cast<double>(79 * GiB);
  const Peak whole = peak_of(plan, parts);
  EXPECT_EQ(whole.source, peak_source::known_device);
  EXPECT_GT(whole.tflops, 0.0);
  parts.device.memory_bytes = static_cast<double>(40 * GiB);
  const Peak slice = peak_of(plan, parts);
  EXPECT_EQ(slice.source, peak_source::none);
  EXPECT_EQ(slice.tflops, 0.0);
  EXPECT_EQ(slice.note.rfind("no data sheet of 'NVIDIA H100 80GB HBM3' with 40", 0), 0u)
      << slice.note;
  parts.measured_ceilings = {0.0, 0.0};
  EXPECT_EQ(peak_of(plan, parts).note.rfind("no memory to measure", 0), 0u);
}

}  // namespace
}  // namespace gptbench
