#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "post/cells.h"
#include "post/style.h"

namespace gptbench {
namespace {

std::string row_of(const RunView& run) {
  std::string row =
      run.source_mark() + run.model_name() + " (mp=" + std::to_string(run.deck().tensor_parallel());
  if (run.deck().pipeline_parallel() > 1)
    row += ", pp=" + std::to_string(run.deck().pipeline_parallel());
  if (run.deck().integer("batch", "micro_batch_size", 0) > 0)  // a published row may not say it
    row += ", grad accum=" + std::to_string(run.deck().gradient_accumulation()) +
           ", micro-batch=" + std::to_string(run.deck().micro_batch());
  row += ", ZeRO " + std::to_string(run.deck().zero_stage());
  return row + (run.deck().offloads() ? " + offload)" : ")");
}

struct NodesOfDevices {
  int64_t nodes, devices_per_node;
  bool operator<(const NodesOfDevices& other) const {
    const int64_t a = nodes * devices_per_node, b = other.nodes * other.devices_per_node;
    return a != b ? a < b : nodes < other.nodes;
  }
  bool operator==(const NodesOfDevices& other) const {
    return nodes == other.nodes && devices_per_node == other.devices_per_node;
  }
};

NodesOfDevices machine_of(const RunView& run) {
  const Summary& s = run.summary();
  const int64_t nodes = std::max<int64_t>(1, s.nodes);
  return {nodes, s.ranks_per_node > 0 ? s.ranks_per_node : s.world_size / nodes};
}

double gigabytes(double bytes) {
  return bytes / 1e9;
}

// One figure per line; what was not recorded is left out.
std::string cell_of(const RunView& run) {
  const std::string* const printed =
      run.rates().restatement().any() ? nullptr : run.printed("megatron", "cell");
  if (printed != nullptr) return *printed;
  if (!run.counts()) return run.outcome();
  const Summary& s = run.summary();
  std::string cell = fixed(s.rate.samples_per_s, 2, 3) + " samples/sec";
  const double tflops = run.rates().tflops(name_of(FlopsConvention::megatron), true);
  if (tflops > 0.0) cell += "\n" + fixed(tflops, 1) + " tflops/gpu";
  const double used = s.memory_used_bytes();
  if (used > 0.0) {
    cell += "\n" + fixed(gigabytes(used), 1);
    if (s.device.memory_bytes > 0.0) cell += "/" + fixed(gigabytes(s.device.memory_bytes), 1);
    cell += " GB";
  }
  if (s.device.power_w) {
    cell += "\n" + fixed(*s.device.power_w, 0);
    if (s.device.power_limit_w) cell += "/" + fixed(*s.device.power_limit_w, 0);
    cell += " W";
  }
  if (s.device.utilisation) cell += "\n" + fixed(100.0 * *s.device.utilisation, 0) + " %";
  if (!run.skipped_note().empty()) cell += "\n" + run.skipped_note();
  return cell;
}

Cell optional_figure(std::optional<double> DeviceFigures::*value, double factor = 1.0) {
  return figures(
      [=](const RunView& run) { return factor * (run.summary().device.*value).value_or(0.0); },
      decimals(1, 3));
}

// A published row may not say it.
Cell known_batch(const Cell& cell) {
  return [=](const RunView& run) {
    return run.deck().integer("batch", "micro_batch_size", 0) > 0 ? cell(run) : "-";
  };
}

// "" where the row has none.
std::string published_tflops(const std::string& cell) {
  for (const std::string& line : split(cell, '\n')) {
    const size_t unit = line.find(" tflops/gpu");
    if (unit != std::string::npos) return line.substr(0, unit);
  }
  return "";
}

double published_or_computed_tflops(const RunView& run) {
  const std::string* const printed =
      run.rates().restatement().any() ? nullptr : run.printed("megatron", "cell");
  return printed == nullptr ? run.rates().tflops(name_of(FlopsConvention::megatron), true)
                            : std::strtod(published_tflops(*printed).c_str(), nullptr);
}

// One row per run, which holds each figure of a cell in a column of its own; under names that
// --published reads.
std::vector<StyleColumn> columns_for_programs() {
  const auto text = [](const char* heading, const Cell& cell) {
    return StyleColumn{heading, cell, false};
  };
  return {
      text("model", &RunView::model_name),
      {"nodes", [](const RunView& run) { return std::to_string(machine_of(run).nodes); }},
      {"gpus_per_node",
       [](const RunView& run) { return std::to_string(machine_of(run).devices_per_node); }},
      {"mp", whole(&RunDeck::tensor_parallel)},
      {"pp", whole(&RunDeck::pipeline_parallel)},
      {"zero_stage", whole(&RunDeck::zero_stage)},
      text("offload", [](const RunView& run) { return run.deck().offloads() ? "cpu" : "none"; }),
      {"micro_batch_size", known_batch(whole(&RunDeck::micro_batch))},
      {"grad_accum", known_batch(whole(&RunDeck::gradient_accumulation))},
      {"samples_per_s", figures(&Summary::rate, &RateFigures::samples_per_s, decimals(2, 3))},
      {"tflops_per_gpu", figures(published_or_computed_tflops, decimals(1)), true, true},
      {"memory_used_gb",
       fact([](const RunView& run) { return gigabytes(run.summary().memory_used_bytes()); },
            decimals(1))},
      {"memory_total_gb",
       fact([](const RunView& run) { return gigabytes(run.summary().device.memory_bytes); },
            decimals(1))},
      {"power_w", optional_figure(&DeviceFigures::power_w)},
      {"power_limit_w", optional_figure(&DeviceFigures::power_limit_w)},
      {"utilisation_pct", optional_figure(&DeviceFigures::utilisation, 100.0)},
      text("notes", &RunView::skipped_note),
  };
}

// Whether run a is shown before b in their cell: runs that count first, then the faster one.
bool better(const RunView& a, const RunView& b) {
  if (a.counts() != b.counts()) return a.counts();
  return a.summary().rate.samples_per_s > b.summary().rate.samples_per_s;
}

}  // namespace

std::vector<Table> megatron_tables(const Runs& runs) {
  std::vector<NodesOfDevices> machines;
  for (const RunView& run : runs) {
    const NodesOfDevices machine = machine_of(run);
    if (std::find(machines.begin(), machines.end(), machine) == machines.end())
      machines.push_back(machine);
  }
  std::sort(machines.begin(), machines.end());

  const std::string restated = runs.empty() ? "" : runs.front().rates().restatement().note();
  Table table{"Models over nodes * devices per node" + restated +
                  ". A cell is the fastest valid run; mp: tensor parallel, tflops/gpu: per device, "
                  "recomputation counted",
              {{"model \\ num_node * num_gpus", false}},
              {}};
  for (const NodesOfDevices& machine : machines)
    table.columns.push_back(
        {std::to_string(machine.nodes) + "*" + std::to_string(machine.devices_per_node), false});
  for (const Runs& group : grouped(runs, row_of)) {
    std::vector<std::string> row = {row_of(group.front())};
    for (const NodesOfDevices& machine : machines) {
      const RunView* best = nullptr;
      for (const RunView& run : group)
        if (machine_of(run) == machine && (best == nullptr || better(run, *best))) best = &run;
      row.push_back(best == nullptr ? "" : cell_of(*best));
    }
    table.rows.push_back(std::move(row));
  }
  table.for_programs =
      table_of("megatron", table.caption, columns_for_programs(), runs).for_programs;
  return {table};
}

}  // namespace gptbench
