#include "measure/sampler.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

#include "base/clock.h"

namespace gptbench {
namespace {

// Lets the calling thread run wherever the job may: the kernel cuts the mask to the job's cpuset.
void unbind_from_cores() {
  constexpr int max_cores = 1 << 14;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
      CPU_ALLOC(max_cores), [](cpu_set_t* set) { CPU_FREE(set); });
  if (mask == nullptr) return;
  const size_t bytes = CPU_ALLOC_SIZE(max_cores);
  CPU_ZERO_S(bytes, mask.get());
  for (size_t core = 0; core < max_cores; ++core) CPU_SET_S(core, bytes, mask.get());
  sched_setaffinity(0, bytes, mask.get());  // where it is refused, the thread stays where it is
}

}  // namespace

std::optional<double> SensorIntegral::Mean::value() const {
  if (seconds <= 0.0) return std::nullopt;
  return weighted / seconds;
}

void SensorIntegral::add(double time_s, const SensorReading& reading) {
  const bool first = readings_ == 0;
  const double elapsed_s = first ? 0.0 : time_s - last_s_;
  if (first) {
    first_s_ = time_s;
    first_ = reading;
  }
  last_s_ = time_s;
  ++readings_;
  const auto add_to = [&](Mean& mean, const std::optional<double>& value) {
    if (first || !value) return;
    mean.weighted += *value * elapsed_s;
    mean.seconds += elapsed_s;
  };
  add_to(utilisation_, reading.utilisation);
  add_to(clock_, reading.clock_ghz);
  if (reading.power_w && last_.power_w) add_to(power_, 0.5 * (*reading.power_w + *last_.power_w));
  last_ = reading;
  const auto raise = [](std::optional<double>& largest, const std::optional<double>& value) {
    if (value && (!largest || *value > *largest)) largest = value;
  };
  raise(memory_used_bytes_, reading.memory_used_bytes);
  raise(temperature_c_, reading.temperature_c);
}

SensorTotals SensorIntegral::totals() const {
  SensorTotals totals;
  totals.window_s = last_s_ - first_s_;
  totals.readings = readings_;
  totals.utilisation = utilisation_.value();
  totals.clock_ghz = clock_.value();
  totals.power_w = power_.value();
  totals.memory_used_bytes = memory_used_bytes_;
  totals.temperature_c = temperature_c_;
  const auto counted = [&](std::optional<double> SensorReading::*counter) {
    const std::optional<double>&first = first_.*counter, &last = last_.*counter;
    return first && last ? std::optional<double>(*last - *first) : std::nullopt;
  };
  totals.errors_corrected = counted(&SensorReading::errors_corrected);
  totals.errors_uncorrected = counted(&SensorReading::errors_uncorrected);
  const std::optional<double> energy_j = counted(&SensorReading::energy_j);
  if (energy_j && totals.window_s > 0.0) {
    totals.energy_j = energy_j;
    totals.power_w = *totals.energy_j / totals.window_s;
  } else if (totals.power_w) {
    totals.energy_j = *totals.power_w * totals.window_s;
  }
  return totals;
}

void SensorTimeline::add(double time_s, const SensorReading& reading) {
  const bool first = !std::exchange(begun_, true);
  if (first) first_s_ = time_s;
  const double passed_s = first ? 0.0 : time_s - last_s_, at_s = time_s - first_s_;
  while (at_s >= interval_s_ * static_cast<double>(max_intervals)) double_interval();
  const auto interval = static_cast<size_t>(at_s / interval_s_);
  const auto add_to = [&](Quantity quantity, const std::optional<double>& value,
                          double weight = 1.0) {
    if (!value) return;
    sums_[at(quantity, false, interval)] += *value;
    sums_[at(quantity, true, interval)] += weight;
  };
  // A counter tells more than a look at the power of a moment. It moves in steps of up to a tenth
  // of a second: the power between two readings that are closer counts for as little as their time.
  if (reading.energy_j && last_energy_j_ && passed_s > 0.0)
    add_to(power, *reading.energy_j - *last_energy_j_, passed_s);
  else
    add_to(power, reading.power_w);
  add_to(clock, reading.clock_ghz);
  add_to(temperature, reading.temperature_c);
  add_to(utilisation, reading.utilisation);
  last_s_ = time_s;
  last_energy_j_ = reading.energy_j;
}

void SensorTimeline::double_interval() {
  for (size_t row = 0; row < sums_.size(); row += max_intervals)
    for (size_t i = 0; i < max_intervals; ++i)
      sums_[row + i] = 2 * i < max_intervals ? sums_[row + 2 * i] + sums_[row + 2 * i + 1] : 0.0;
  interval_s_ *= 2.0;
}

void SensorTimeline::coarsen_to(double interval_s) {
  while (interval_s_ < interval_s) double_interval();
}

Sampler::Sampler(std::unique_ptr<Sensors> sensors, double period_s)
    : sensors_(std::move(sensors)), period_s_(period_s), timeline_(period_s) {}

Sampler::~Sampler() {
  end();
}

void Sampler::begin() {
  if (sensors_ == nullptr || samples_) return;
  samples_ = true;
  integral_ = SensorIntegral();
  timeline_ = SensorTimeline(period_s_);
  longest_reading_s_ = 0.0;
  stop_ = false;
  take();
  // Signals are the training loop's: a new thread has the mask of the one that makes it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { sample_until_stopped(); });
  } catch (const std::system_error&) {  // a limit of processes: two readings have to do
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SensorTotals Sampler::end() {
  if (!samples_) return SensorTotals();
  samples_ = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  take();
  SensorTotals totals = integral_.totals();
  totals.reading_s = longest_reading_s_;
  return totals;
}

void Sampler::sample_until_stopped() {
  unbind_from_cores();
  std::unique_lock<std::mutex> lock(mutex_);
  const auto period = std::chrono::duration<double>(period_s_);
  while (!wake_.wait_for(lock, period, [this] { return stop_; })) take();
}

void Sampler::take() {
  const double start_s = now_s();
  const SensorReading reading = sensors_->read();
  longest_reading_s_ = std::max(longest_reading_s_, now_s() - start_s);
  integral_.add(start_s, reading);
  timeline_.add(start_s, reading);
}

}  // namespace gptbench
