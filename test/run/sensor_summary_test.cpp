// Sensors of two units, by hand.
#include "run/sensor_summary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gptbench {
namespace {

// 10 s of a unit; each figure is a multiple of `factor`.
std::vector<double> message(double factor) {
  SensorFacts facts;
  facts.power_limit_w = 50.0 * factor;
  facts.memory_total_bytes = 2000.0 * factor;
  SensorTotals totals;
  totals.window_s = 10.0;
  totals.readings = 11;
  totals.power_w = 10.0 * factor;
  totals.energy_j = 100.0 * factor;
  totals.utilisation = 0.25 * factor;
  totals.clock_ghz = 2.0 * factor;
  totals.temperature_c = 20.0 * factor;
  totals.memory_used_bytes = 1000.0 * factor;
  totals.errors_corrected = 3.0 * factor;
  totals.errors_uncorrected = 1.0 * factor;
  return SensorUnits::message(&facts, totals);
}

const std::vector<double> of_another_rank = SensorUnits::message(nullptr, {});

SensorUnits units(const std::vector<std::vector<double>>& messages) {
  std::vector<double> all;
  for (const std::vector<double>& each : messages) all.insert(all.end(), each.begin(), each.end());
  return SensorUnits(all);
}

// Two hosts of 10 W and 30 W, 100 J and 300 J, with two ranks each.
GatheredSensors two_hosts() {
  GatheredSensors gathered;
  gathered.hosts = units({message(1.0), of_another_rank, message(3.0), of_another_rank});
  gathered.ranks = 4;
  return gathered;
}

// A unit of 2 readings that counts `uncorrected` errors; NaN: it has no counter.
std::vector<double> counting(double uncorrected) {
  SensorTotals totals;
  totals.readings = 2;
  if (!std::isnan(uncorrected)) totals.errors_uncorrected = uncorrected;
  const SensorFacts none;
  return SensorUnits::message(&none, totals);
}

}  // namespace

TEST(SensorSummary, RanksShareThePowerOfTheirHosts) {
  const SensorSummary s = summary_of(two_hosts()).value();
  EXPECT_DOUBLE_EQ(s.power_w.value(), 10.0);        // (10 + 30) W / 4 ranks
  EXPECT_DOUBLE_EQ(s.power_limit_w.value(), 50.0);  // (50 + 150) W / 4 ranks
  EXPECT_DOUBLE_EQ(s.node_power_w.value(), 20.0);   // (10 + 30) W / 2 nodes
  EXPECT_DOUBLE_EQ(s.energy_j.value(), 400.0);
  EXPECT_DOUBLE_EQ(s.utilisation.value(), 0.5);
  EXPECT_DOUBLE_EQ(s.clock_ghz, 4.0);
  EXPECT_DOUBLE_EQ(s.cpu_clock_ghz, 4.0);
  EXPECT_DOUBLE_EQ(s.temperature_c.value(), 60.0);
  EXPECT_DOUBLE_EQ(s.node_memory_used_bytes, 3000.0);
  EXPECT_DOUBLE_EQ(s.errors_corrected.value(), 12.0);
  EXPECT_DOUBLE_EQ(s.errors_uncorrected.value(), 4.0);
  EXPECT_FALSE(s.gpu_memory_bytes.has_value());
  EXPECT_TRUE(s.memory.empty());
}

// One host of two ranks, each with a GPU of its own, of 20 W and 60 W.
TEST(SensorSummary, FiguresOfDevicesAreThoseOfGpusWhereThereAreAny) {
  GatheredSensors gathered;
  gathered.hosts = units({message(1.0), of_another_rank});
  gathered.gpus = units({message(2.0), message(6.0)});
  gathered.ranks = 2;
  gathered.gpu_memory_used_bytes = {2000.0, 6000.0};
  const SensorSummary s = summary_of(gathered).value();
  EXPECT_DOUBLE_EQ(s.power_w.value(), 40.0);
  EXPECT_DOUBLE_EQ(s.power_limit_w.value(), 200.0);
  EXPECT_DOUBLE_EQ(s.node_power_w.value(), 10.0);
  EXPECT_DOUBLE_EQ(s.energy_j.value(), 800.0);
  EXPECT_DOUBLE_EQ(s.clock_ghz, 8.0);
  EXPECT_DOUBLE_EQ(s.cpu_clock_ghz, 2.0);
  EXPECT_DOUBLE_EQ(s.node_memory_used_bytes, 1000.0);
  EXPECT_DOUBLE_EQ(s.gpu_memory_used_bytes.value(), 6000.0);
  EXPECT_DOUBLE_EQ(s.gpu_memory_bytes.value(), 12000.0);
  EXPECT_DOUBLE_EQ(s.errors_corrected.value(), 27.0);  // 3 of the host, 6 and 18 of the GPUs
  EXPECT_DOUBLE_EQ(s.errors_uncorrected.value(), 9.0);
  ASSERT_EQ(s.memory.size(), 1u);
  EXPECT_EQ(s.memory[0].bytes, (std::vector<int64_t>{2000, 6000}));
}

// Zeros would look like memory that nobody uses.
TEST(SensorSummary, MemoryThatNoGpuCountsIsAbsent) {
  GatheredSensors gathered;
  gathered.hosts = units({message(1.0)});
  SensorTotals without_memory;
  without_memory.readings = 2;
  const SensorFacts none;
  gathered.gpus = units({SensorUnits::message(&none, without_memory)});
  gathered.ranks = 1;
  gathered.gpu_memory_used_bytes = {0.0};
  EXPECT_TRUE(summary_of(gathered).value().memory.empty());
}

// A sum over some of the units would be wrong.
TEST(SensorSummary, WhatOneUnitLacksIsAbsent) {
  GatheredSensors gathered = two_hosts();
  SensorTotals without_power;
  without_power.readings = 2;
  const SensorFacts none;
  gathered.hosts = units({message(1.0), SensorUnits::message(&none, without_power)});
  const SensorSummary s = summary_of(gathered).value();
  EXPECT_FALSE(s.power_w || s.power_limit_w || s.node_power_w || s.energy_j || s.temperature_c);
}

// A unit without a counter, such as a GPU whose ECC is off, hides no error of another one; but what
// the others do not find may be in that one.
TEST(SensorSummary, ErrorsCountWhereAUnitHasNoCounter) {
  const double no_counter = std::nan("");
  const auto errors = [](const SensorUnits& hosts, const SensorUnits& gpus) {
    GatheredSensors gathered;
    gathered.hosts = hosts;
    gathered.gpus = gpus;
    gathered.ranks = 2;
    return summary_of(gathered).value().errors_uncorrected;
  };
  const SensorUnits no_gpus, host = units({counting(no_counter)});
  EXPECT_EQ(errors(units({counting(3.0), counting(no_counter)}), no_gpus), 3.0);
  EXPECT_EQ(errors(host, units({counting(no_counter), counting(2.0)})), 2.0);
  EXPECT_EQ(errors(units({counting(1.0)}), units({counting(no_counter)})), 1.0);
  EXPECT_EQ(errors(host, units({counting(0.0), counting(0.0)})), 0.0);
  EXPECT_FALSE(errors(units({counting(0.0), counting(no_counter)}), no_gpus).has_value());
  EXPECT_FALSE(errors(units({counting(0.0)}), units({counting(no_counter), counting(0.0)})));
}

TEST(SensorSummary, NoneWhereNothingWasRead) {
  GatheredSensors gathered = two_hosts();
  const SensorFacts facts;
  gathered.hosts = units({SensorUnits::message(&facts, {}), SensorUnits::message(&facts, {})});
  EXPECT_FALSE(summary_of(gathered).has_value());
  gathered.hosts = SensorUnits();
  EXPECT_FALSE(summary_of(gathered).has_value());
}

// Two units are read at 0 s and at 1 s, the second one shows three times as much. Nothing is read
// in the third second.
TEST(SensorSeries, MeansOverUnitsByInterval) {
  std::vector<double> sums(SensorTimeline().sums().size(), 0.0);
  for (const double factor : {1.0, 3.0}) {
    SensorTimeline timeline;
    for (const double second : {0.0, 1.0}) {
      SensorReading reading;
      reading.power_w = factor * (10.0 + second);
      reading.clock_ghz = factor * (2.0 + second);
      reading.temperature_c = factor * (20.0 + second);
      timeline.add(50.0 + second, reading);
    }
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += timeline.sums()[i];
  }
  const SensorSeries series = sensor_series(sums, 1.0, 2.0);
  EXPECT_EQ(series.interval_s, 1.0);
  EXPECT_EQ(series.power_w, (std::vector<double>{20.0, 22.0}));
  EXPECT_EQ(series.clock_ghz, (std::vector<double>{4.0, 6.0}));
  EXPECT_EQ(series.temperature_c, (std::vector<double>{40.0, 42.0}));
  EXPECT_TRUE(series.utilisation.empty());  // not offered
  const SensorSeries longer = sensor_series(sums, 1.0, 2.5);
  ASSERT_EQ(longer.power_w.size(), 3u);
  EXPECT_TRUE(std::isnan(longer.power_w[2]));
}

}  // namespace gptbench
