#include <algorithm>

#include "post/cells.h"
#include "post/style.h"

namespace gptbench {
namespace {

std::string row_of(const RunView& run) {
  std::string row = run.is_published() ? "published: " : "";
  row += run.model_name() + " (mp=" + std::to_string(run.tensor_parallel());
  if (run.pipeline_parallel() > 1) row += ", pp=" + std::to_string(run.pipeline_parallel());
  if (run.integer("batch", "micro_batch_size", 0) > 0)  // a published row may not say it
    row += ", grad accum=" + std::to_string(run.gradient_accumulation()) +
           ", micro-batch=" + std::to_string(run.micro_batch());
  row += ", ZeRO " + std::to_string(run.zero_stage());
  return row + (run.offloads() ? " + offload)" : ")");
}

struct Machine {
  int64_t nodes, devices_per_node;
  bool operator<(const Machine& other) const {
    const int64_t a = nodes * devices_per_node, b = other.nodes * other.devices_per_node;
    return a != b ? a < b : nodes < other.nodes;
  }
  bool operator==(const Machine& other) const {
    return nodes == other.nodes && devices_per_node == other.devices_per_node;
  }
};

Machine machine_of(const RunView& run) {
  const Summary& s = run.summary();
  const int64_t nodes = std::max<int64_t>(1, s.nodes);
  return {nodes, s.ranks_per_node > 0 ? s.ranks_per_node : s.world_size / nodes};
}

double gigabytes(double bytes) {
  return bytes / 1e9;
}

// One figure per line; what was not recorded is left out.
std::string cell_of(const RunView& run) {
  const std::string* const printed = run.is_restated() ? nullptr : run.printed("megatron", "cell");
  if (printed != nullptr) return *printed;
  if (!run.counts()) return run.outcome();
  const Summary& s = run.summary();
  std::string cell = fixed(s.samples_per_s, 2, 3) + " samples/sec";
  const double tflops = run.tflops(name_of(FlopsConvention::megatron), true);
  if (tflops > 0.0) cell += "\n" + fixed(tflops, 1) + " tflops/gpu";
  const double used =
      s.device_memory_used_bytes > 0.0 ? s.device_memory_used_bytes : s.peak_memory_bytes;
  if (used > 0.0) {
    cell += "\n" + fixed(gigabytes(used), 1);
    if (s.device_memory_bytes > 0.0) cell += "/" + fixed(gigabytes(s.device_memory_bytes), 1);
    cell += " GB";
  }
  if (s.power_w) {
    cell += "\n" + fixed(*s.power_w, 0);
    if (s.power_limit_w) cell += "/" + fixed(*s.power_limit_w, 0);
    cell += " W";
  }
  if (s.utilisation) cell += "\n" + fixed(100.0 * *s.utilisation, 0) + " %";
  if (!run.skipped_note().empty()) cell += "\n" + run.skipped_note();
  return cell;
}

// Of several runs of one cell, the fastest that counts.
bool better(const RunView& a, const RunView& b) {
  if (a.counts() != b.counts()) return a.counts();
  return a.summary().samples_per_s > b.summary().samples_per_s;
}

}  // namespace

std::vector<Table> megatron_tables(const Runs& runs) {
  std::vector<Machine> machines;
  for (const RunView& run : runs) {
    const Machine machine = machine_of(run);
    if (std::find(machines.begin(), machines.end(), machine) == machines.end())
      machines.push_back(machine);
  }
  std::sort(machines.begin(), machines.end());

  const std::string restated = runs.empty() ? "" : runs.front().restated_note();
  Table table{"Models over nodes * devices per node" + restated,
              {{"model \\ num_node * num_gpus", false}},
              {}};
  for (const Machine& machine : machines)
    table.columns.push_back(
        {std::to_string(machine.nodes) + "*" + std::to_string(machine.devices_per_node), false});
  for (const Runs& group : grouped(runs, row_of)) {
    std::vector<std::string> row = {row_of(group.front())};
    for (const Machine& machine : machines) {
      const RunView* best = nullptr;
      for (const RunView& run : group)
        if (machine_of(run) == machine && (best == nullptr || better(run, *best))) best = &run;
      row.push_back(best == nullptr ? "" : cell_of(*best));
    }
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace gptbench
