#include "run/sensing.h"

#include <set>

#include "base/text.h"
#include "deck/config.h"
#include "deck/devices.h"
#include "measure/system_info.h"
#include "run/sensor_summary.h"

namespace gptbench {
namespace {

// Collective. The units that all ranks read, on rank 0; none on the others.
SensorUnits gather_units(MpiWorld& world, const Sampler& sampler, const SensorTotals& totals) {
  const Sensors* const sensors = sampler.sensors();
  return SensorUnits(
      world.gather(SensorUnits::message(sensors != nullptr ? &sensors->facts() : nullptr, totals)));
}

// Collective. Means over the devices of all ranks, on rank 0.
SensorSeries gather_sensor_series(MpiWorld& world, SensorTimeline timeline, double window_s) {
  const double interval_s = world.max(timeline.interval_s());
  timeline.coarsen_to(interval_s);
  std::vector<double> sums = timeline.sums();
  world.sum_on_first(sums);
  return sensor_series(sums, interval_s, window_s);
}

// True on the lowest of the ranks that pass the same key. Collective.
bool speaks_for(MpiWorld& world, const std::string& key) {
  std::set<std::string> seen;
  std::string speakers;
  for (const std::string& each : world.gather(key))
    speakers += seen.insert(each).second ? '1' : '0';
  world.broadcast(speakers);
  return speakers[static_cast<size_t>(world.rank())] == '1';
}

std::string sources_of(const Sampler& sampler) {
  return sampler.sensors() == nullptr ? "" : join(sampler.sensors()->facts().sources, "\n");
}

}  // namespace

Sensing::Sensing(MpiWorld& world, const Device& device)
    : on_gpu_(device.info().kind == DeviceKind::cuda) {
  const bool host_speaker = world.node_rank() == 0;
  host_ =
      std::make_unique<Sampler>(host_speaker ? make_host_sensors(system_info().cores) : nullptr);
  const std::string& bus_id = device.info().pci_bus_id;
  const bool gpu_speaker =
      on_gpu_ && speaks_for(world, "node " + std::to_string(world.node()) + " " + bus_id);
  gpu_ = std::make_unique<Sampler>(
      gpu_speaker ? make_gpu_sensors(bus_id, gpu_part_of(device.info().model)) : nullptr);
}

DeviceFacts Sensing::device_facts(const MpiWorld& world, const Device& device) const {
  if (world.rank() != 0) return {};
  const SystemInfo system = system_info();
  DeviceFacts facts;
  // CUDA's name, which tells a slice of a GPU from the GPU that NVML knows.
  facts.reported = on_gpu_ ? device.info().model : system.cpu_model;
  facts.memory_bytes = static_cast<double>(device.memory_offer().total_bytes);
  // The memory of a host does not identify its processor, so 0 is passed.
  const DeviceData* const known = find_device(facts.reported, on_gpu_ ? facts.memory_bytes : 0.0);
  if (known != nullptr) facts.name = known->name;
  if (known == nullptr && on_gpu_) facts.name = facts.reported;
  // Ranks share the processors and the memory of their nodes, which may have different numbers of
  // them; a GPU is of one rank.
  if (!on_gpu_) {
    const double ranks = static_cast<double>(world.size()) / static_cast<double>(world.num_nodes());
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
  GatheredSensors gathered;
  gathered.hosts = gather_units(world, *host_, host_totals_);
  gathered.gpus = gather_units(world, *gpu_, gpu_totals_);
  gathered.ranks = world.size();
  gathered.gpu_memory_used_bytes = world.gather(
      std::vector<double>{on_gpu_ ? gpu_totals_.memory_used_bytes.value_or(0.0) : 0.0});
  const SensorUnits& devices = on_gpu_ ? gathered.gpus : gathered.hosts;
  gathered.series = gather_sensor_series(world, (on_gpu_ ? gpu_ : host_)->timeline(),
                                         devices.largest(SensorUnits::window).value_or(0.0));
  gathered.host_sources = sources_of(*host_);
  gathered.gpu_sources = sources_of(*gpu_);
  return summary_of(gathered);
}

}  // namespace gptbench
