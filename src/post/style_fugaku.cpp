#include <algorithm>

#include "post/cells.h"
#include "post/style.h"

namespace gptbench {
namespace {

// "512", or "512 (2.2Hz)" where the clock is known: the published spelling.
std::string nodes_cell(const RunView& run) {
  const std::string nodes = std::to_string(run.summary().nodes);
  const double clock = run.summary().device.clock_ghz;
  return clock > 0.0 ? nodes + " (" + fixed(clock, 1) + "Hz)" : nodes;
}

std::string size_cell(const RunView& run) {
  return model_size(run.summary().num_params);
}

// Memory is known for many runs that have no other figure.
std::string memory_text(const RunView& run) {
  const double bytes = run.summary().memory_used_bytes();
  if (bytes > 0.0) return mebibytes(bytes);
  return run.counts() ? "-" : run.outcome();
}

// TFLOP/s per process, recomputation counted (k = 4) as published.
double tflops_of(const RunView& run) {
  return run.rates().tflops(name_of(FlopsConvention::megatron), true);
}

// TFLOP/s per process times processes / 1024. Published with one process per node.
double aggregate_petaflops(const RunView& run) {
  return tflops_of(run) * static_cast<double>(run.summary().world_size) / 1024.0;
}

std::vector<StyleColumn> columns_of(bool full_checkpointing) {
  // The published tables print two significant digits, with recomputation three, and not more than
  // four decimals.
  const int digits = full_checkpointing ? 3 : 2;
  return {
      {"Nodes", nodes_cell},
      shown(Shown::for_people, {"Size", size_cell}),
      shown(Shown::for_programs, {"Size", size_cell, false}),
      {"DP", whole(&RunDeck::data_parallel)},
      {"TP", whole(&RunDeck::tensor_parallel)},
      {"PP", whole(&RunDeck::pipeline_parallel)},
      {"MBS", whole(&RunDeck::micro_batch)},
      {"GBS", whole(&RunDeck::global_batch)},
      in_unit("MiB", {"Mem", {memory_text, memory_used_mib}}),
      {"Sec/it", figures(&Summary::rate, &RateFigures::sec_per_it, decimals(1))},
      {full_checkpointing ? "TFLOPs*" : "TFLOPs", figures(tflops_of, decimals(2)), true, true},
      {"Est. Aggr. PetaFLOPs",
       figures(aggregate_petaflops, [=](double p) { return significant(p, digits, 4); }), true,
       true},
      {"Notes", &RunView::notes, false},
      // What the caption says, under names that --published reads.
      shown(Shown::for_programs, {"seq_length", whole(&RunDeck::seq_length)}),
      shown(Shown::for_programs,
            {"activation_checkpointing",
             [](const RunView& run) { return run.deck().checkpointing_cell(); }, false}),
      shown(Shown::for_programs,
            in_unit("GHz", {"Clock",
                            fact([](const RunView& run) { return run.summary().device.clock_ghz; },
                                 decimals(1))})),
  };
}

std::string setting(const RunView& run) {
  return "Sequence length " + std::to_string(run.deck().seq_length()) +
         ", activation checkpointing " + run.deck().checkpointing_cell();
}

std::string caption(const RunView& run) {
  return setting(run) + (run.deck().full_checkpointing() ? " (* recomputation counted)" : "") +
         run.rates().restatement().note() +
         ". As published: TFLOPs per rank, PetaFLOPs = TFLOPs x ranks / 1024";
}

// The clock stands in a cell for people alone.
void explain_clock(Table& table) {
  const bool has_clock = std::any_of(table.rows.begin(), table.rows.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const std::string& cell) {
      return cell.find("Hz)") != std::string::npos;
    });
  });
  if (has_clock) table.caption += ", Hz stands for GHz";
}

}  // namespace

std::vector<Table> fugaku_tables(const Runs& runs) {
  std::vector<Table> tables;
  for (const Runs& group : grouped(runs, setting)) {
    const bool full = group.front().deck().full_checkpointing();
    tables.push_back(table_of("fugaku", caption(group.front()), columns_of(full), group));
    explain_clock(tables.back());
  }
  return tables;
}

}  // namespace gptbench
