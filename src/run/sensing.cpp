#include "run/sensing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "deck/config.h"
#include "deck/devices.h"
#include "measure/system_info.h"

namespace gptbench {
namespace {

constexpr double absent = std::numeric_limits<double>::quiet_NaN();

// Message of one rank to rank 0 about one unit (host or GPU). NaN: not offered by the machine;
// `units` 0: another rank reads the unit.
enum Slot {
  units,
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
  num_slots
};

std::vector<double> packed(const Sampler& sampler, const SensorTotals& totals) {
  std::vector<double> values(num_slots, absent);
  if (sampler.sensors() == nullptr) {
    values[units] = 0.0;
    return values;
  }
  const SensorFacts& facts = sampler.sensors()->facts();
  values[units] = 1.0;
  values[window] = totals.window_s;
  values[readings] = static_cast<double>(totals.readings);
  values[reading_time] = totals.reading_s;
  values[energy] = totals.energy_j.value_or(absent);
  values[power] = totals.power_w.value_or(absent);
  values[power_limit] = facts.power_limit_w.value_or(absent);
  values[busy] = totals.utilisation.value_or(absent);
  values[clock_now] = totals.clock_ghz.value_or(absent);
  values[memory_used] = totals.memory_used_bytes.value_or(absent);
  values[memory_total] = facts.memory_total_bytes.value_or(absent);
  values[celsius] = totals.temperature_c.value_or(absent);
  values[corrected] = totals.errors_corrected.value_or(absent);
  values[uncorrected] = totals.errors_uncorrected.value_or(absent);
  return values;
}

// Figures of all units of one kind, on rank 0.
class Gathered {
 public:
  explicit Gathered(const std::vector<double>& all) {
    for (size_t at = 0; at + num_slots <= all.size(); at += num_slots)
      if (all[at + units] > 0.0)
        rows_.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                           all.begin() + static_cast<std::ptrdiff_t>(at + num_slots));
  }

  bool empty() const { return rows_.empty(); }
  // Absent if any unit lacks it: a sum over some of the units would be wrong.
  std::optional<double> sum(Slot slot) const {
    double total = 0.0;
    for (const std::vector<double>& row : rows_) total += row[slot];
    if (rows_.empty() || !std::isfinite(total)) return std::nullopt;
    return total;
  }
  std::optional<double> mean(Slot slot) const {
    const std::optional<double> total = sum(slot);
    if (!total) return std::nullopt;
    return *total / static_cast<double>(rows_.size());
  }
  std::optional<double> largest(Slot slot) const {
    if (!sum(slot)) return std::nullopt;
    double value = rows_.front()[slot];
    for (const std::vector<double>& row : rows_) value = std::max(value, row[slot]);
    return value;
  }
  size_t size() const { return rows_.size(); }

 private:
  std::vector<std::vector<double>> rows_;
};

// Collective. Means over the devices of all ranks, on rank 0.
SensorSeries series_of(MpiWorld& world, SensorTimeline timeline, double window_s) {
  SensorSeries series;
  series.interval_s = world.max(timeline.interval_s());
  timeline.coarsen_to(series.interval_s);
  std::vector<double> sums = timeline.sums();
  world.sum_on_first(sums);
  const size_t intervals =
      std::min(SensorTimeline::max_intervals,
               static_cast<size_t>(std::ceil(std::max(0.0, window_s) / series.interval_s)));
  std::vector<double>* const rows[] = {&series.power_w, &series.clock_ghz, &series.temperature_c,
                                       &series.utilisation};
  for (size_t q = 0; q < SensorTimeline::num_quantities && world.rank() == 0; ++q) {
    std::vector<double>& row = *rows[q];
    for (size_t i = 0; i < intervals; ++i)
      row.push_back(sums[SensorTimeline::at(q, false, i)] / sums[SensorTimeline::at(q, true, i)]);
    if (std::none_of(row.begin(), row.end(), [](double x) { return std::isfinite(x); }))
      row.clear();
  }
  return series;
}

// True on the lowest of the ranks that pass the same key. Collective.
bool speaks_for(MpiWorld& world, const std::string& key) {
  const std::vector<std::string> keys = world.gather(key);
  std::string speakers;
  for (size_t rank = 0; rank < keys.size(); ++rank)
    speakers += std::find(keys.begin(), keys.end(), keys[rank]) - keys.begin() ==
                        static_cast<std::ptrdiff_t>(rank)
                    ? '1'
                    : '0';
  world.broadcast(speakers);
  return speakers[static_cast<size_t>(world.rank())] == '1';
}

std::string how_sampled(const Gathered& gathered, const std::string& name) {
  return printed("%s: %zu unit%s, %.0f readings each over %.3g s, the longest of %.2g ms",
                 name.c_str(), gathered.size(), gathered.size() == 1 ? "" : "s",
                 gathered.largest(readings).value_or(0.0), gathered.mean(window).value_or(0.0),
                 1e3 * gathered.largest(reading_time).value_or(0.0));
}

// Sources of rank 0's units; they stand for those of the other ranks, which have the same machine.
std::string sources_of(const Sampler& sampler) {
  return sampler.sensors() == nullptr ? "" : join(sampler.sensors()->facts().sources, "\n");
}

}  // namespace

Sensing::Sensing(MpiWorld& world, const Device& device)
    : on_gpu_(device.info().kind == DeviceKind::cuda) {
  const std::string node = "node " + std::to_string(world.node());
  const bool host_speaker = speaks_for(world, node);
  host_ =
      std::make_unique<Sampler>(host_speaker ? make_host_sensors(system_info().cores) : nullptr);
  const std::string& bus_id = device.info().pci_bus_id;
  const bool gpu_speaker = on_gpu_ && speaks_for(world, node + " " + bus_id);
  gpu_ = std::make_unique<Sampler>(gpu_speaker ? make_gpu_sensors(bus_id) : nullptr);
}

DeviceFacts Sensing::device_facts(const MpiWorld& world, const Device& device) const {
  if (world.rank() != 0) return {};
  const SystemInfo system = system_info();
  DeviceFacts facts;
  facts.reported = on_gpu_ ? gpu_->sensors()->facts().name : system.cpu_model;
  facts.memory_bytes = static_cast<double>(device.memory_offer().total_bytes);
  // The memory of a host does not identify its processor, so 0 is passed.
  const DeviceData* const known = find_device(facts.reported, on_gpu_ ? facts.memory_bytes : 0.0);
  if (known != nullptr) facts.name = known->name;
  if (known == nullptr && on_gpu_) facts.name = facts.reported;
  // Ranks share a node's processors and memory; a GPU is of one rank.
  if (!on_gpu_) {
    const double ranks = static_cast<double>(world.node_size());
    facts.per_rank = static_cast<double>(system.sockets) / ranks;
    facts.memory_bytes /= ranks;
  }
  facts.node_memory_bytes = host_->sensors()->facts().memory_total_bytes.value_or(0.0);
  return facts;
}

void Sensing::begin() {
  host_->begin();
  gpu_->begin();
}

void Sensing::end() {
  gpu_totals_ = gpu_->end();
  host_totals_ = host_->end();
}

std::optional<SensorSummary> Sensing::summary(MpiWorld& world) const {
  const Gathered hosts(world.gather(packed(*host_, host_totals_)));
  const Gathered gpus(world.gather(packed(*gpu_, gpu_totals_)));
  const std::vector<double> used = world.gather(
      std::vector<double>{on_gpu_ ? gpu_totals_.memory_used_bytes.value_or(0.0) : 0.0});
  const SensorSeries series = series_of(world, (on_gpu_ ? gpu_ : host_)->timeline(),
                                        (on_gpu_ ? gpus : hosts).largest(window).value_or(0.0));
  if (world.rank() != 0 || hosts.largest(readings).value_or(0.0) == 0.0) return std::nullopt;
  SensorSummary s;
  s.node_memory_used_bytes = hosts.largest(memory_used).value_or(0.0);
  s.cpu_clock_ghz = hosts.mean(clock_now).value_or(0.0);
  s.node_power_w = hosts.mean(power);

  // A rank's device: its GPU, or its share of the hosts.
  const Gathered& devices = on_gpu_ ? gpus : hosts;
  const auto share = [&](const std::optional<double>& sum) {
    return sum ? std::optional<double>(*sum / static_cast<double>(world.size())) : std::nullopt;
  };
  s.power_w = share(devices.sum(power));
  s.power_limit_w = share(devices.sum(power_limit));
  s.utilisation = devices.mean(busy);
  s.energy_j = devices.sum(energy);
  s.clock_ghz = devices.mean(clock_now).value_or(0.0);
  s.temperature_c = devices.largest(celsius);
  s.errors_corrected = devices.sum(corrected);
  s.errors_uncorrected = devices.sum(uncorrected);
  s.series = series;
  s.note = how_sampled(hosts, "host") + "\n" + sources_of(*host_);
  if (!on_gpu_) return s;

  s.gpu_memory_used_bytes = devices.largest(memory_used);
  s.gpu_memory_bytes = devices.largest(memory_total);
  MemoryEntry entry{"device_used", "in use on the device by all processes, as NVML counts", {}};
  for (const double bytes : used) entry.bytes.push_back(static_cast<int64_t>(bytes));
  s.memory.push_back(std::move(entry));
  s.note += "\n" + how_sampled(gpus, "gpu") + "\n" + sources_of(*gpu_);
  return s;
}

}  // namespace gptbench
