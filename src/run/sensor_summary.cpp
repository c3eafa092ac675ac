#include "run/sensor_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace gptbench {
namespace {

constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

std::string how_sampled(const SensorUnits& units, const std::string& name) {
  return printed("%s: %zu unit%s, %.0f readings each over %.3g s, the longest of %.2g ms",
                 name.c_str(), units.size(), units.size() == 1 ? "" : "s",
                 units.largest(SensorUnits::readings).value_or(0.0),
                 units.mean(SensorUnits::window).value_or(0.0),
                 1e3 * units.largest(SensorUnits::reading_time).value_or(0.0));
}

}  // namespace

std::vector<double> SensorUnits::message(const SensorFacts* facts, const SensorTotals& totals) {
  std::vector<double> values(num_figures, not_known);
  if (facts == nullptr) {
    values[units] = 0.0;
    return values;
  }
  values[units] = 1.0;
  values[window] = totals.window_s;
  values[readings] = static_cast<double>(totals.readings);
  values[reading_time] = totals.reading_s;
  values[energy] = totals.energy_j.value_or(not_known);
  values[power] = totals.power_w.value_or(not_known);
  values[power_limit] = facts->power_limit_w.value_or(not_known);
  values[busy] = totals.utilisation.value_or(not_known);
  values[clock_now] = totals.clock_ghz.value_or(not_known);
  values[memory_used] = totals.memory_used_bytes.value_or(not_known);
  values[memory_total] = facts->memory_total_bytes.value_or(not_known);
  values[celsius] = totals.temperature_c.value_or(not_known);
  values[corrected] = totals.errors_corrected.value_or(not_known);
  values[uncorrected] = totals.errors_uncorrected.value_or(not_known);
  return values;
}

SensorUnits::SensorUnits(const std::vector<double>& messages) {
  for (size_t at = 0; at + num_figures <= messages.size(); at += num_figures)
    if (messages[at + units] > 0.0)
      rows_.emplace_back(messages.begin() + static_cast<std::ptrdiff_t>(at),
                         messages.begin() + static_cast<std::ptrdiff_t>(at + num_figures));
}

std::optional<double> SensorUnits::sum(Figure figure) const {
  double total = 0.0;
  for (const std::vector<double>& row : rows_) total += row[figure];
  if (rows_.empty() || !std::isfinite(total)) return std::nullopt;
  return total;
}

double SensorUnits::known_sum(Figure figure) const {
  double total = 0.0;
  for (const std::vector<double>& row : rows_)
    if (std::isfinite(row[figure])) total += row[figure];
  return total;
}

std::optional<double> SensorUnits::mean(Figure figure) const {
  const std::optional<double> total = sum(figure);
  if (!total) return std::nullopt;
  return *total / static_cast<double>(rows_.size());
}

std::optional<double> SensorUnits::largest(Figure figure) const {
  if (!sum(figure)) return std::nullopt;
  double value = rows_.front()[figure];
  for (const std::vector<double>& row : rows_) value = std::max(value, row[figure]);
  return value;
}

SensorSeries sensor_series(const std::vector<double>& sums, double interval_s, double window_s) {
  SensorSeries series;
  series.interval_s = interval_s;
  const size_t intervals =
      std::min(SensorTimeline::max_intervals,
               static_cast<size_t>(std::ceil(std::max(0.0, window_s) / interval_s)));
  std::vector<double>* const rows[] = {&series.power_w, &series.clock_ghz, &series.temperature_c,
                                       &series.utilisation};
  for (size_t q = 0; q < SensorTimeline::num_quantities; ++q) {
    std::vector<double>& row = *rows[q];
    for (size_t i = 0; i < intervals; ++i)
      row.push_back(sums[SensorTimeline::at(q, false, i)] / sums[SensorTimeline::at(q, true, i)]);
    if (std::none_of(row.begin(), row.end(), [](double x) { return std::isfinite(x); }))
      row.clear();
  }
  return series;
}

namespace {

// Errors of the memory of hosts and GPUs. What some of the units count is a lower bound: above 0 it
// condemns a run whatever the others would count, but a 0 says nothing of the devices without a
// counter.
std::optional<double> memory_errors(const SensorUnits& hosts, const SensorUnits& gpus,
                                    SensorUnits::Figure figure) {
  const double found = hosts.known_sum(figure) + gpus.known_sum(figure);
  if (found > 0.0) return found;
  return (gpus.empty() ? hosts : gpus).sum(figure);
}

}  // namespace

std::optional<SensorSummary> summary_of(const GatheredSensors& gathered) {
  using Units = SensorUnits;
  const Units &hosts = gathered.hosts, &gpus = gathered.gpus;
  if (hosts.largest(Units::readings).value_or(0.0) == 0.0) return std::nullopt;
  SensorSummary s;
  s.node_memory_used_bytes = hosts.largest(Units::memory_used).value_or(0.0);
  s.cpu_clock_ghz = hosts.mean(Units::clock_now).value_or(0.0);
  s.node_power_w = hosts.mean(Units::power);

  // A rank's device: its GPU, or its share of the hosts.
  const Units& devices = gpus.empty() ? hosts : gpus;
  const auto share = [&](const std::optional<double>& sum) {
    return sum ? std::optional<double>(*sum / static_cast<double>(gathered.ranks)) : std::nullopt;
  };
  s.power_w = share(devices.sum(Units::power));
  s.power_limit_w = share(devices.sum(Units::power_limit));
  s.utilisation = devices.mean(Units::busy);
  s.energy_j = devices.sum(Units::energy);
  s.clock_ghz = devices.mean(Units::clock_now).value_or(0.0);
  s.temperature_c = devices.largest(Units::celsius);
  s.errors_corrected = memory_errors(hosts, gpus, Units::corrected);
  s.errors_uncorrected = memory_errors(hosts, gpus, Units::uncorrected);
  s.series = gathered.series;
  s.note = how_sampled(hosts, "host") + "\n" + gathered.host_sources;
  if (gpus.empty()) return s;

  s.gpu_memory_used_bytes = gpus.largest(Units::memory_used);
  s.gpu_memory_bytes = gpus.largest(Units::memory_total);
  if (s.gpu_memory_used_bytes) {
    MemoryEntry entry{"device_used", "in use on the device by all processes, as NVML counts", {}};
    for (const double bytes : gathered.gpu_memory_used_bytes)
      entry.bytes.push_back(static_cast<int64_t>(bytes));
    s.memory.push_back(std::move(entry));
  }
  s.note += "\n" + how_sampled(gpus, "gpu") + "\n" + gathered.gpu_sources;
  return s;
}

}  // namespace gptbench
