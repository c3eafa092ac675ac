#include <algorithm>

#include "post/cells.h"
#include "post/regions.h"
#include "post/style.h"

namespace gptbench {
namespace {

// Runs of one table differ in ranks and batch only.
std::string setting(const RunView& run) {
  if (run.is_point()) return "published: " + run.deck().text("run", "name");
  return run.model_name() + ", sequence length " + std::to_string(run.deck().seq_length()) + ", " +
         run.deck().text("precision", "compute", "fp32") + ", activation checkpointing " +
         run.deck().checkpointing_cell() + ", ZeRO " + std::to_string(run.deck().zero_stage()) +
         ", on " + run.device_name();
}

double ranks_of(const RunView& run) {
  return static_cast<double>(run.summary().world_size);
}

// The fewest ranks with figures; null where no run has any.
const RunView* base_of(const Runs& runs) {
  const RunView* base = nullptr;
  for (const RunView& run : runs)
    if (run.counts() && run.summary().rate.tokens_per_s > 0.0 && run.summary().world_size > 0 &&
        (base == nullptr || run.summary().world_size < base->summary().world_size))
      base = &run;
  return base;
}

double tokens_per_rank(const RunView& run) {
  return run.summary().rate.tokens_per_s / std::max(1.0, ranks_of(run));
}

// TFLOP/s per rank, by the convention of the deck.
double tflops_of(const RunView& run) {
  return run.rates().tflops(run.rates().convention());
}

// Percent of a step that the slowest rank spends in communication.
std::optional<double> communication_share(const RunView& run) {
  double communication_s = -1.0, step_s = 0.0;
  for (const RegionTime& region : slowest_rank(run.record()).regions) {
    if (region.name == "communication") communication_s = region.time_s;
    if (region.name == "step") step_s = region.time_s;
  }
  if (!run.counts() || step_s <= 0.0 || communication_s < 0.0) return std::nullopt;
  return 100.0 * communication_s / step_s;
}

std::string communication_text(const RunView& run) {
  const std::optional<double> share = communication_share(run);
  return share ? fixed(*share, 1, 0) + " %" : run.counts() ? "-" : run.outcome();
}

std::vector<StyleColumn> columns_for(const RunView* base) {
  const auto speedup = [=](const RunView& run) {
    return base == nullptr ? 0.0
                           : run.summary().rate.tokens_per_s / base->summary().rate.tokens_per_s;
  };
  const auto efficiency = [=](const RunView& run) {
    const double ratio = base == nullptr ? 1.0 : ranks_of(run) / ranks_of(*base);
    return 100.0 * speedup(run) / ratio;
  };
  return {
      {"Ranks", whole(&Summary::world_size)},
      {"Nodes", whole(&Summary::nodes)},
      {"DP", whole(&RunDeck::data_parallel)},
      {"TP", whole(&RunDeck::tensor_parallel)},
      {"PP", whole(&RunDeck::pipeline_parallel)},
      {"CP", whole(&RunDeck::context_parallel)},
      {"MBS", whole(&RunDeck::micro_batch)},
      {"GBS", whole(&RunDeck::global_batch)},
      {"Sec/it", figures(&Summary::rate, &RateFigures::sec_per_it, decimals(2, 3))},
      {"Tokens/s", figures(&Summary::rate, &RateFigures::tokens_per_s, decimals(0, 3))},
      {"Tokens/s/rank", figures(tokens_per_rank, decimals(0, 3))},
      {"TFLOPs/rank", figures(tflops_of, decimals(2)), true, true},
      {"PetaFLOPs",
       figures([](const RunView& run) { return tflops_of(run) * ranks_of(run) / 1e3; },
               [](double p) { return significant(p, 3, 4); }),
       true, true},
      {"Speed-up", figures(speedup, decimals(2))},
      in_unit("%",
              {"Efficiency", figures(efficiency, [](double e) { return fixed(e, 1) + " %"; })}),
      in_unit("%", {"Comm", {communication_text, communication_share}}),
      {"Notes", &RunView::notes, false},
  };
}

}  // namespace

std::vector<Table> scaling_tables(const Runs& runs) {
  std::vector<Table> tables;
  for (Runs group : grouped(runs, setting)) {
    std::stable_sort(group.begin(), group.end(), [](const RunView& a, const RunView& b) {
      return a.summary().world_size < b.summary().world_size;
    });
    tables.push_back(table_of("scaling",
                              setting(group.front()) + group.front().rates().restatement().note(),
                              columns_for(base_of(group)), group));
  }
  return tables;
}

}  // namespace gptbench
