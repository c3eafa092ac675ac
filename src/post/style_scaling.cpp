#include <algorithm>

#include "post/cells.h"
#include "post/regions.h"
#include "post/style.h"

namespace gptbench {
namespace {

// Runs of one table differ in ranks and batch only.
std::string setting(const RunView& run) {
  if (run.is_published() && run.integer("model", "seq_length", 0) == 0)
    return "published: " + run.text("run", "name");
  return run.model_name() + ", sequence length " + std::to_string(run.seq_length()) + ", " +
         run.text("precision", "compute", "fp32") + ", activation checkpointing " +
         run.checkpointing_cell() + ", ZeRO " + std::to_string(run.zero_stage()) + ", on " +
         run.device_name();
}

double ranks_of(const RunView& run) {
  return static_cast<double>(run.summary().world_size);
}

// The fewest ranks with figures; null where no run has any.
const RunView* base_of(const Runs& runs) {
  const RunView* base = nullptr;
  for (const RunView& run : runs)
    if (run.counts() && run.summary().tokens_per_s > 0.0 && run.summary().world_size > 0 &&
        (base == nullptr || run.summary().world_size < base->summary().world_size))
      base = &run;
  return base;
}

// TFLOP/s per rank, by the convention of the deck.
double tflops_of(const RunView& run) {
  return run.tflops(run.flops_convention());
}

// Percent of a step that the slowest rank spends in communication; negative where it is not known.
double communication_share(const RunView& run) {
  double communication_s = -1.0, step_s = 0.0;
  for (const RegionTime& region : slowest_rank(run.record()).regions) {
    if (region.name == "communication") communication_s = region.time_s;
    if (region.name == "step") step_s = region.time_s;
  }
  return step_s > 0.0 && communication_s >= 0.0 ? 100.0 * communication_s / step_s : -1.0;
}

std::vector<StyleColumn> columns_for(const RunView* base) {
  const auto count = [](int64_t value) { return std::to_string(value); };
  const auto speedup = [=](const RunView& run) {
    return base == nullptr ? 0.0 : run.summary().tokens_per_s / base->summary().tokens_per_s;
  };
  return {
      {"Ranks", [=](const RunView& run) { return count(run.summary().world_size); }},
      {"Nodes", [=](const RunView& run) { return count(run.summary().nodes); }},
      {"DP", [=](const RunView& run) { return count(run.data_parallel()); }},
      {"TP", [=](const RunView& run) { return count(run.tensor_parallel()); }},
      {"PP", [=](const RunView& run) { return count(run.pipeline_parallel()); }},
      {"CP", [=](const RunView& run) { return count(run.context_parallel()); }},
      {"MBS", [=](const RunView& run) { return count(run.micro_batch()); }},
      {"GBS", [=](const RunView& run) { return count(run.global_batch()); }},
      {"Sec/it",
       [](const RunView& run) {
         return figure(run, run.summary().sec_per_it, [](double s) { return fixed(s, 2, 3); });
       }},
      {"Tokens/s",
       [](const RunView& run) {
         return figure(run, run.summary().tokens_per_s, [](double t) { return fixed(t, 0, 3); });
       }},
      {"Tokens/s/rank",
       [](const RunView& run) {
         return figure(run, run.summary().tokens_per_s / std::max(1.0, ranks_of(run)),
                       [](double t) { return fixed(t, 0, 3); });
       }},
      {"TFLOPs/rank",
       [](const RunView& run) {
         return figure(run, tflops_of(run), [](double t) { return fixed(t, 2); });
       }},
      {"PetaFLOPs",
       [](const RunView& run) {
         return figure(run, tflops_of(run) * ranks_of(run) / 1000.0,
                       [](double p) { return significant(p, 3, 4); });
       }},
      {"Speed-up",
       [=](const RunView& run) {
         return figure(run, speedup(run), [](double s) { return fixed(s, 2); });
       }},
      {"Efficiency",
       [=](const RunView& run) {
         const double ratio = base == nullptr ? 1.0 : ranks_of(run) / ranks_of(*base);
         return figure(run, 100.0 * speedup(run) / ratio,
                       [](double e) { return fixed(e, 1) + " %"; });
       }},
      {"Comm",
       [](const RunView& run) {
         const double share = communication_share(run);
         if (!run.counts() || share < 0.0) return run.counts() ? std::string("-") : run.outcome();
         return fixed(share, 1, 0) + " %";
       }},
      {"Notes", [](const RunView& run) { return run.notes(); }, false},
  };
}

}  // namespace

std::vector<Table> scaling_tables(const Runs& runs) {
  std::vector<Table> tables;
  for (Runs group : grouped(runs, setting)) {
    std::stable_sort(group.begin(), group.end(), [](const RunView& a, const RunView& b) {
      return a.summary().world_size < b.summary().world_size;
    });
    tables.push_back(table_of("scaling", setting(group.front()) + group.front().restated_note(),
                              columns_for(base_of(group)), group));
  }
  return tables;
}

}  // namespace gptbench
