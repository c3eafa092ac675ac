// What a stretch of readings says; the readings are scripted, no time is asserted.
#include "measure/sampler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace gptbench {
namespace {

// Each reading has 5 J and 100 bytes more than the one before.
class Scripted : public Sensors {
 public:
  explicit Scripted(bool counts) : counts_(counts) {}
  SensorReading read() override {
    SensorReading reading;
    const double n = static_cast<double>(++readings);
    if (counts_) reading.energy_j = 5.0 * n;
    reading.power_w = 40.0;
    reading.utilisation = 0.5;
    reading.clock_ghz = 2.2;
    reading.memory_used_bytes = 100.0 * n;
    return reading;
  }
  const SensorFacts& facts() const override { return facts_; }
  std::atomic<int> readings{0};

 private:
  bool counts_;
  SensorFacts facts_;
};

void wait_for(const Scripted& sensors, int readings) {
  while (sensors.readings < readings) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Sampler, CountersGiveEnergyBetweenTheEnds) {
  auto owned = std::make_unique<Scripted>(true);
  const Scripted& sensors = *owned;
  Sampler sampler(std::move(owned), 1e-3);
  sampler.begin();
  wait_for(sensors, 4);
  const SensorTotals totals = sampler.end();
  const double readings = static_cast<double>(totals.readings);
  EXPECT_GE(totals.readings, 5);
  EXPECT_EQ(totals.readings, sensors.readings);
  EXPECT_GT(totals.window_s, 0.0);
  EXPECT_DOUBLE_EQ(totals.energy_j.value(), 5.0 * (readings - 1.0));
  EXPECT_DOUBLE_EQ(totals.power_w.value(), *totals.energy_j / totals.window_s);
  EXPECT_NEAR(totals.utilisation.value(), 0.5, 1e-12);
  EXPECT_NEAR(totals.clock_ghz.value(), 2.2, 1e-12);
  EXPECT_DOUBLE_EQ(totals.memory_used_bytes.value(), 100.0 * readings);
}

TEST(Sampler, SampledPowerIsIntegrated) {
  Sampler sampler(std::make_unique<Scripted>(false), 1e-3);
  sampler.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const SensorTotals totals = sampler.end();
  EXPECT_NEAR(totals.power_w.value(), 40.0, 1e-9);
  EXPECT_NEAR(totals.energy_j.value(), 40.0 * totals.window_s, 1e-9);
}

// The period is an hour: the ends alone are read, and end() does not wait for the thread's period.
TEST(Sampler, TheTwoEndsSuffice) {
  Sampler sampler(std::make_unique<Scripted>(true), 3600.0);
  sampler.begin();
  const SensorTotals totals = sampler.end();
  EXPECT_EQ(totals.readings, 2);
  EXPECT_DOUBLE_EQ(totals.energy_j.value(), 5.0);
}

TEST(Sampler, ASecondStretchStartsAnew) {
  Sampler sampler(std::make_unique<Scripted>(true), 3600.0);
  sampler.begin();
  sampler.end();
  sampler.begin();
  EXPECT_DOUBLE_EQ(sampler.end().energy_j.value(), 5.0);
}

TEST(Sampler, NothingWithoutSensorsOrBegin) {
  Sampler of_another_rank(nullptr);
  of_another_rank.begin();
  EXPECT_EQ(of_another_rank.end().readings, 0);
  Sampler never_begun(std::make_unique<Scripted>(true));
  EXPECT_EQ(never_begun.end().readings, 0);
}

}  // namespace
}  // namespace gptbench
