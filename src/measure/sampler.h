// Sensors that are read during a run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "measure/sensors.h"

namespace gptbench {

// Totals of one unit's readings over an interval.
struct SensorTotals {
  double window_s = 0.0;           // length of the interval; 0: none was sampled
  int64_t readings = 0;            // its two ends included
  double reading_s = 0.0;          // longest time that one took
  std::optional<double> energy_j;  // difference of counters, else sampled power over time
  std::optional<double> power_w;   // mean: energy over the interval
  std::optional<double> utilisation, clock_ghz;                // means over time
  std::optional<double> memory_used_bytes, temperature_c;      // largest
  std::optional<double> errors_corrected, errors_uncorrected;  // new ones
};

// Means over time of readings that follow each other. A reading stands for the time since the one
// before it; a power that is sampled, with its neighbour, for the trapezoid between them.
class SensorIntegral {
 public:
  void add(double time_s, const SensorReading& reading);
  SensorTotals totals() const;  // but for reading_s

 private:
  struct Mean {
    double weighted = 0.0, seconds = 0.0;
    std::optional<double> value() const;
  };
  int64_t readings_ = 0;
  double first_s_ = 0.0, last_s_ = 0.0;
  SensorReading first_, last_;
  std::optional<double> memory_used_bytes_, temperature_c_;
  Mean power_, utilisation_, clock_;
};

// Readings over time, as means over intervals of equal length from the first one on. When there are
// more than max_intervals, pairs of them become one.
class SensorTimeline {
 public:
  enum Quantity { power, clock, temperature, utilisation, num_quantities };
  static constexpr size_t max_intervals = 128;

  explicit SensorTimeline(double interval_s = 1.0) : interval_s_(interval_s) {}
  void add(double time_s, const SensorReading& reading);
  void coarsen_to(double interval_s);  // a multiple by a power of two
  double interval_s() const { return interval_s_; }
  // [quantity, sum or number of readings, interval], of energy counters joules and seconds;
  // timelines of several units can be added up.
  const std::vector<double>& sums() const { return sums_; }
  static size_t at(size_t quantity, bool number, size_t interval) {
    return (2 * quantity + (number ? 1 : 0)) * max_intervals + interval;
  }

 private:
  void double_interval();
  double interval_s_, first_s_ = 0.0, last_s_ = 0.0;
  std::optional<double> last_energy_j_;
  bool begun_ = false;
  std::vector<double> sums_ = std::vector<double>(at(num_quantities, false, 0));
};

// Reads sensors at both ends of an interval and once per period in between. Energy counters need
// only the two ends; sampled power, clocks, utilisation and counters that wrap within minutes also
// need the readings in between. A thread takes these; it may run on any core of the job and
// receives no signals. One reading of a host takes well below a millisecond, of a GPU some
// milliseconds in the driver: at one per second less than 1% of a core.
class Sampler {
 public:
  // Null sensors: all totals stay empty (another rank reads the unit).
  explicit Sampler(std::unique_ptr<Sensors> sensors, double period_s = 1.0);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void begin();
  // Totals since begin(); empty where that was not called.
  SensorTotals end();

  // Timeline of the last interval that ended; empty before.
  const SensorTimeline& timeline() const { return timeline_; }

  const Sensors* sensors() const { return sensors_.get(); }

 private:
  void take();  // with mutex_ held, or without a thread
  void sample_until_stopped();

  std::unique_ptr<Sensors> sensors_;
  double period_s_;
  bool samples_ = false;  // between begin() and end()
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;

  SensorIntegral integral_;  // over the stretch so far
  SensorTimeline timeline_;
  double longest_reading_s_ = 0.0;
};

}  // namespace gptbench
