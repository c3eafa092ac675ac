#include <algorithm>

#include "base/units.h"
#include "post/cells.h"
#include "post/style.h"

namespace gptbench {
namespace {

constexpr int64_t max_devices = 8;  // the published table is of one node of 8

// As the device's own tool counts where there is one, else the high-water mark of the process.
const MemoryEntry* used_memory(const RunView& run) {
  for (const char* name : {"device_used", "peak"})
    for (const MemoryEntry& entry : run.record().memory)
      if (entry.name == name && !entry.reduced) return &entry;
  return nullptr;
}

std::optional<double> used_bytes(const RunView& run, int64_t device) {
  const MemoryEntry* const memory = used_memory(run);
  if (memory == nullptr || device >= static_cast<int64_t>(memory->bytes.size()))
    return std::nullopt;
  return static_cast<double>(memory->bytes[static_cast<size_t>(device)]);
}

// "30760MiB / 40537MiB"; the total where the record knows it.
Cell memory_cell(int64_t device) {
  const auto text = [=](const RunView& run) {
    const std::optional<double> used = used_bytes(run, device);
    const double total = run.summary().device.memory_bytes;
    if (!used) return std::string("-");
    return whole_mebibytes(*used) + (total > 0.0 ? " / " + whole_mebibytes(total) : "");
  };
  return {text, [=](const RunView& run) {
            const std::optional<double> used = used_bytes(run, device);
            return used ? std::optional(*used / static_cast<double>(MiB)) : std::nullopt;
          }};
}

std::string batch_cell(const RunView& run) {
  const bool never_trained = run.outcome() == "OOM" && run.record().steps.loss.empty();
  return never_trained ? "Cannot even initialize model" : std::to_string(run.deck().global_batch());
}

int64_t devices_shown(const Runs& runs) {
  int64_t devices = 1;
  for (const RunView& run : runs) devices = std::max(devices, run.summary().world_size);
  return std::min(devices, max_devices);
}

}  // namespace

std::vector<Table> zero_tables(const Runs& runs) {
  const auto key = [](const char* name) {
    return [=](const RunView& run) { return std::to_string(run.deck().integer("model", name, 0)); };
  };
  std::vector<StyleColumn> columns = {
      {"Model", &RunView::model_name, false},
      {"num_layers", key("num_layers")},
      {"hidden_size", key("hidden_size")},
      {"num_heads", key("num_attention_heads")},
      {"# gpus", whole(&Summary::world_size)},
      {"data parallel", whole(&RunDeck::data_parallel)},
      {"model parallel", whole(&RunDeck::tensor_parallel)},
      {"ZeRO Stage", whole(&RunDeck::zero_stage)},
      {"CPU Offload", [](const RunView& run) { return run.deck().offloads() ? "Yes" : "No"; },
       false},
      {"Max Global BSZ", batch_cell},
      {"time/it (ms)",
       figures([](const RunView& run) { return 1e3 * run.summary().rate.sec_per_it; },
               decimals(1))},
      {"Throughput (samples/sec)",
       figures(&Summary::rate, &RateFigures::samples_per_s, decimals(2, 3))},
  };
  for (int64_t device = 0; device < devices_shown(runs); ++device)
    columns.push_back(
        in_unit("MiB", {"GPU" + std::to_string(device) + " Memory Usage", memory_cell(device)}));
  const auto device_mib = [](const RunView& run) {
    return run.summary().device.memory_bytes / static_cast<double>(MiB);
  };
  columns.push_back(
      shown(Shown::for_programs, in_unit("MiB", {"GPU Memory", fact(device_mib, decimals(0))})));
  columns.push_back({"Notes", &RunView::notes, false});
  return {table_of(
      "zero",
      "Batch by ZeRO stage. As published, Max Global BSZ is the batch of the run: the largest "
      "only where a search found it",
      columns, runs)};
}

}  // namespace gptbench
