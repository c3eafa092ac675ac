// From what the sensors of all hosts and GPUs read to the figures of a run. Pure: rank 0 calls it
// with what it gathered (run/sensing.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/sampler.h"
#include "run/record_parts.h"

namespace gptbench {

// Figures of all units of one kind: hosts, or GPUs.
class SensorUnits {
 public:
  // Figures of one unit, the message of its rank. NaN: not offered by the machine.
  enum Figure {
    units,  // 1; 0: another rank reads the unit
    window,
    readings,
    reading_time,
    energy,
    power,
    power_limit,
    busy,
    clock_now,
    memory_used,
    memory_total,
    celsius,
    corrected,
    uncorrected,
    num_figures
  };
  // [figure]; without `facts` another rank reads the unit.
  static std::vector<double> message(const SensorFacts* facts, const SensorTotals& totals);

  SensorUnits() = default;
  // `messages`: of all ranks, [rank, figure].
  explicit SensorUnits(const std::vector<double>& messages);

  bool empty() const { return rows_.empty(); }
  size_t size() const { return rows_.size(); }
  // Absent if any unit lacks it: a sum over some of the units would be wrong.
  std::optional<double> sum(Figure figure) const;
  // Sum over the units that have the figure; 0 where none has it.
  double known_sum(Figure figure) const;
  std::optional<double> mean(Figure figure) const;
  std::optional<double> largest(Figure figure) const;

 private:
  std::vector<std::vector<double>> rows_;  // [unit, figure]
};

// Means over units, interval by interval of a window. `sums`: SensorTimeline::sums() of all units
// added up; their intervals have the same length.
SensorSeries sensor_series(const std::vector<double>& sums, double interval_s, double window_s);

// Readings of all ranks on rank 0; on the others there are no units.
struct GatheredSensors {
  SensorUnits hosts;
  SensorUnits gpus;  // none where ranks compute on hosts
  int64_t ranks = 0;
  std::vector<double> gpu_memory_used_bytes;  // [rank]
  SensorSeries series;
  // Sources of rank 0's units; they stand for those of the other ranks, which have the same
  // machine.
  std::string host_sources, gpu_sources;
};
// Power and its limit are means over ranks, which share their units evenly; energy is that of all
// devices; errors of memory are those of all hosts and GPUs that count them, absent where that is 0
// and a device has no counter. None where no step was timed.
std::optional<SensorSummary> summary_of(const GatheredSensors& gathered);

}  // namespace gptbench
