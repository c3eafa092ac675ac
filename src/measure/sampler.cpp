#include "measure/sampler.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/clock.h"

namespace gptbench {
namespace {

// Lets the calling thread run wherever the job may: the kernel cuts the mask to the job's cpuset.
void unbind_from_cores() {
  constexpr int most_cores = 1 << 14;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
      CPU_ALLOC(most_cores), [](cpu_set_t* set) { CPU_FREE(set); });
  if (mask == nullptr) return;
  const size_t bytes = CPU_ALLOC_SIZE(most_cores);
  CPU_ZERO_S(bytes, mask.get());
  for (size_t core = 0; core < most_cores; ++core) CPU_SET_S(core, bytes, mask.get());
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
    first_energy_j_ = reading.energy_j;
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
  if (reading.power_w && last_power_w_) add_to(power_, 0.5 * (*reading.power_w + *last_power_w_));
  last_power_w_ = reading.power_w;
  last_energy_j_ = reading.energy_j;
  if (reading.memory_used_bytes)
    memory_used_bytes_ = std::max(memory_used_bytes_.value_or(0.0), *reading.memory_used_bytes);
}

SensorTotals SensorIntegral::totals() const {
  SensorTotals totals;
  totals.window_s = last_s_ - first_s_;
  totals.readings = readings_;
  totals.utilisation = utilisation_.value();
  totals.clock_ghz = clock_.value();
  totals.power_w = power_.value();
  totals.memory_used_bytes = memory_used_bytes_;
  if (first_energy_j_ && last_energy_j_ && totals.window_s > 0.0) {
    totals.energy_j = *last_energy_j_ - *first_energy_j_;
    totals.power_w = *totals.energy_j / totals.window_s;
  } else if (totals.power_w) {
    totals.energy_j = *totals.power_w * totals.window_s;
  }
  return totals;
}

Sampler::Sampler(std::unique_ptr<Sensors> sensors, double period_s)
    : sensors_(std::move(sensors)), period_s_(period_s) {}

Sampler::~Sampler() {
  end();
}

void Sampler::begin() {
  if (sensors_ == nullptr || thread_.joinable()) return;
  integral_ = SensorIntegral();
  longest_reading_s_ = 0.0;
  stop_ = false;
  take();
  // Signals are the training loop's: a new thread has the mask of the one that makes it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { sample_until_stopped(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SensorTotals Sampler::end() {
  if (!thread_.joinable()) return SensorTotals();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
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
}

}  // namespace gptbench
