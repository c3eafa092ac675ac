// What a stretch of readings says; the readings are scripted, no time is asserted.
#include "measure/sampler.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace gptbench {
namespace {

SensorReading reading_of(double power_w, double utilisation, double clock_ghz, double bytes) {
  SensorReading reading;
  reading.power_w = power_w;
  reading.utilisation = utilisation;
  reading.clock_ghz = clock_ghz;
  reading.memory_used_bytes = bytes;
  return reading;
}

// Power: (10 + 30) / 2 W for 1 s and (30 + 60) / 2 W for 3 s are 155 J in 4 s. Utilisation:
// 0.2 for 1 s and 0.6 for 3 s; clock: 2 for 1 s and 3 for 3 s; the first reading stands for no
// time.
TEST(SensorIntegral, ReadingsAreWeightedWithTheirTime) {
  SensorIntegral integral;
  integral.add(100.0, reading_of(10.0, 0.9, 1.0, 5.0));
  EXPECT_FALSE(integral.totals().power_w || integral.totals().energy_j);
  integral.add(101.0, reading_of(30.0, 0.2, 2.0, 9.0));
  integral.add(104.0, reading_of(60.0, 0.6, 3.0, 7.0));
  const SensorTotals totals = integral.totals();
  EXPECT_EQ(totals.readings, 3);
  EXPECT_DOUBLE_EQ(totals.window_s, 4.0);
  EXPECT_DOUBLE_EQ(totals.power_w.value(), 38.75);
  EXPECT_DOUBLE_EQ(totals.energy_j.value(), 155.0);
  EXPECT_DOUBLE_EQ(totals.utilisation.value(), 0.5);
  EXPECT_DOUBLE_EQ(totals.clock_ghz.value(), 2.75);
  EXPECT_DOUBLE_EQ(totals.memory_used_bytes.value(), 9.0);
}

// Between the second and the fourth reading nothing is known: the mean of 20 W over the first
// second and 50 W over the last two is 40 W, for all of the 8 s.
TEST(SensorIntegral, WhatIsMissingDoesNotCount) {
  SensorIntegral integral;
  integral.add(0.0, reading_of(10.0, 1.0, 1.0, 1.0));
  integral.add(1.0, reading_of(30.0, 1.0, 1.0, 1.0));
  integral.add(4.0, SensorReading());
  integral.add(6.0, reading_of(40.0, 0.25, 1.0, 1.0));
  integral.add(8.0, reading_of(60.0, 0.25, 1.0, 1.0));
  const SensorTotals totals = integral.totals();
  EXPECT_DOUBLE_EQ(totals.power_w.value(), 40.0);
  EXPECT_DOUBLE_EQ(totals.energy_j.value(), 320.0);
  EXPECT_DOUBLE_EQ(totals.utilisation.value(), 0.4);  // (1 * 1 + 0.25 * 2 + 0.25 * 2) / 5
}

// Counters go before sampled power, unless one end is missing.
TEST(SensorIntegral, EnergyIsTheDifferenceOfCounters) {
  SensorReading first = reading_of(10.0, 1.0, 1.0, 1.0), last = reading_of(30.0, 1.0, 1.0, 1.0);
  first.energy_j = 700.0;
  last.energy_j = 760.0;
  SensorIntegral integral;
  integral.add(0.0, first);
  integral.add(4.0, last);
  EXPECT_DOUBLE_EQ(integral.totals().energy_j.value(), 60.0);
  EXPECT_DOUBLE_EQ(integral.totals().power_w.value(), 15.0);
  last.energy_j.reset();
  integral.add(8.0, last);  // 20 W for 4 s, 30 W for 4 s
  EXPECT_DOUBLE_EQ(integral.totals().energy_j.value(), 200.0);
  EXPECT_DOUBLE_EQ(integral.totals().power_w.value(), 25.0);
}

TEST(SensorIntegral, HighestTemperatureAndNewErrors) {
  SensorReading reading;
  SensorIntegral integral;
  reading.errors_corrected = 100.0;
  reading.errors_uncorrected = 5.0;
  for (const double celsius : {-40.0, -20.0, -30.0}) {
    reading.temperature_c = celsius;
    integral.add(celsius + 50.0, reading);
    *reading.errors_corrected += 3.0;
  }
  EXPECT_EQ(integral.totals().temperature_c.value(), -20.0);
  EXPECT_EQ(integral.totals().errors_corrected.value(), 6.0);
  EXPECT_EQ(integral.totals().errors_uncorrected.value(), 0.0);
}

// 256 readings, one a second, in 128 intervals of 2 s; the first joules are those between the first
// two readings.
TEST(SensorTimeline, IntervalsGrowWithTheTime) {
  SensorTimeline timeline;
  const auto mean = [&](SensorTimeline::Quantity quantity, size_t interval) {
    return timeline.sums()[SensorTimeline::at(quantity, false, interval)] /
           timeline.sums()[SensorTimeline::at(quantity, true, interval)];
  };
  SensorReading reading;
  for (int second = 0; second < 256; ++second) {
    reading.temperature_c = second;
    reading.energy_j = second < 128 ? 10.0 * second : 1270.0 + 20.0 * (second - 127);
    timeline.add(1000.0 + second, reading);
  }
  EXPECT_EQ(timeline.interval_s(), 2.0);
  EXPECT_EQ(mean(SensorTimeline::temperature, 0), 0.5);
  EXPECT_EQ(mean(SensorTimeline::temperature, 127), 254.5);
  EXPECT_EQ(mean(SensorTimeline::power, 0), 10.0);
  EXPECT_EQ(mean(SensorTimeline::power, 63), 10.0);
  EXPECT_EQ(mean(SensorTimeline::power, 64), 20.0);
  EXPECT_EQ(timeline.sums()[SensorTimeline::at(SensorTimeline::clock, true, 0)], 0.0);
  timeline.coarsen_to(8.0);
  EXPECT_EQ(mean(SensorTimeline::temperature, 31), 251.5);
  EXPECT_EQ(timeline.sums()[SensorTimeline::at(SensorTimeline::temperature, true, 32)], 0.0);
}

// 100 W, by a counter that moves ten times a second. The last of these steps comes between two
// readings of which the second ends the interval, a hundredth of a second behind the first.
TEST(SensorTimeline, AStepOfACounterIsNoPeakOfPower) {
  SensorTimeline timeline;
  for (const auto& [time_s, energy_j] :
       {std::pair{1000.0, 0.0}, std::pair{1000.94, 90.0}, std::pair{1000.95, 100.0}}) {
    SensorReading reading;
    reading.energy_j = energy_j;
    timeline.add(time_s, reading);
  }
  const auto sum = [&](bool number) {
    return timeline.sums()[SensorTimeline::at(SensorTimeline::power, number, 0)];
  };
  EXPECT_NEAR(sum(false) / sum(true), 100.0 / 0.95, 1e-6);
}

// Without a counter, the mean of the power that the readings of an interval show.
TEST(SensorTimeline, PowerIsSampledWhereNothingCountsEnergy) {
  SensorTimeline timeline;
  timeline.add(1000.0, reading_of(30.0, 1.0, 1.0, 1.0));
  timeline.add(1000.5, reading_of(50.0, 1.0, 1.0, 1.0));
  timeline.add(1001.0, reading_of(60.0, 1.0, 1.0, 1.0));
  const auto power_of = [&](bool number, size_t interval) {
    return timeline.sums()[SensorTimeline::at(SensorTimeline::power, number, interval)];
  };
  EXPECT_EQ(power_of(false, 0), 80.0);
  EXPECT_EQ(power_of(true, 0), 2.0);
  EXPECT_EQ(power_of(false, 1), 60.0);
  EXPECT_EQ(power_of(true, 1), 1.0);
}

// Each reading has 5 J and 100 bytes more than the one before.
class Scripted : public Sensors {
 public:
  SensorReading read() override {
    SensorReading reading;
    const double n = static_cast<double>(++readings);
    reading.energy_j = 5.0 * n;
    reading.memory_used_bytes = 100.0 * n;
    return reading;
  }
  const SensorFacts& facts() const override { return facts_; }
  std::atomic<int> readings{0};

 private:
  SensorFacts facts_;
};

void wait_for(const Scripted& sensors, int readings) {
  while (sensors.readings < readings) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Sampler, CountersGiveEnergyBetweenTheEnds) {
  auto owned = std::make_unique<Scripted>();
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
  EXPECT_DOUBLE_EQ(totals.memory_used_bytes.value(), 100.0 * readings);
}

// The period is an hour: the ends alone are read, and end() does not wait for the thread's period.
TEST(Sampler, TheTwoEndsSuffice) {
  Sampler sampler(std::make_unique<Scripted>(), 3600.0);
  const auto start = std::chrono::steady_clock::now();
  sampler.begin();
  const SensorTotals totals = sampler.end();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(totals.readings, 2);
  EXPECT_GT(totals.reading_s, 0.0);
  EXPECT_LT(totals.reading_s, passed.count());
  EXPECT_DOUBLE_EQ(totals.energy_j.value(), 5.0);
}

// A signal is for the thread that trains: its mask stays, that of the sampler's is full.
TEST(Sampler, SignalsAreForOtherThreads) {
  static std::atomic<bool> was_here{false};
  static pthread_t here = pthread_self();
  std::signal(SIGUSR1, [](int) { was_here = pthread_equal(pthread_self(), here) != 0; });
  Sampler sampler(std::make_unique<Scripted>(), 3600.0);
  sampler.begin();
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGUSR1), 0);
  ::kill(::getpid(), SIGUSR1);
  EXPECT_TRUE(was_here);
  sampler.end();
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(Sampler, ASecondStretchStartsAnew) {
  Sampler sampler(std::make_unique<Scripted>(), 3600.0);
  sampler.begin();
  sampler.end();
  sampler.begin();
  EXPECT_DOUBLE_EQ(sampler.end().energy_j.value(), 5.0);
}

TEST(Sampler, NothingWithoutSensorsOrBegin) {
  Sampler of_another_rank(nullptr);
  of_another_rank.begin();
  EXPECT_EQ(of_another_rank.end().readings, 0);
  Sampler never_begun(std::make_unique<Scripted>());
  EXPECT_EQ(never_begun.end().readings, 0);
}

}  // namespace
}  // namespace gptbench
