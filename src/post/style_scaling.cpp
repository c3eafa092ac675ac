#include <algorithm>
#include <map>

#include "post/cells.h"
#include "post/naming.h"
#include "post/style.h"
#include "record/regions.h"

namespace gptbench {
namespace {

double ranks_of(const RunView& run) {
  return static_cast<double>(run.summary().world_size);
}

ScalingBase base_of(const Runs& runs) {
  std::vector<std::pair<double, double>> points;
  for (const RunView& run : runs)
    if (run.counts() && run.summary().rate.tokens_per_s > 0.0 && run.summary().world_size > 0)
      points.emplace_back(ranks_of(run), run.summary().rate.tokens_per_s);
  return scaling_base(points);
}

// "; speed-up over the median of the 3 runs on 1 rank"; "" where no run has figures.
std::string caption_of(const ScalingBase& base) {
  if (base.runs == 0) return "";
  const std::string ranks = fixed(base.ranks, 0, 0) + (base.ranks == 1.0 ? " rank" : " ranks");
  return "; speed-up over the " +
         (base.runs == 1 ? "run" : "median of the " + std::to_string(base.runs) + " runs") +
         " on " + ranks;
}

double tokens_per_rank(const RunView& run) {
  return run.summary().rate.tokens_per_s / std::max(1.0, ranks_of(run));
}

// TFLOP/s per rank, by the convention of the deck.
double tflops_of(const RunView& run) {
  return run.rates().tflops();
}

// Percent of a step that the slowest rank spends in communication; not known where the file holds
// reductions over ranks.
std::optional<double> communication_share(const RunView& run) {
  double communication_s = -1.0, step_s = 0.0;
  const Breakdown slowest = slowest_rank(run.record());
  if (slowest.rank < 0) return std::nullopt;
  for (const RegionTime& region : slowest.regions) {
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

// `series`: what the runs of this table have of their own.
std::vector<StyleColumn> columns_for(const ScalingBase& base, const std::string& series) {
  const auto speedup = [=](const RunView& run) {
    return base.runs > 0 ? run.summary().rate.tokens_per_s / base.rate : 0.0;
  };
  const auto efficiency = [=](const RunView& run) {
    return base.runs > 0 ? 100.0 * speedup(run) * base.ranks / ranks_of(run) : 0.0;
  };
  const auto setting = [](const char* heading, const Cell& cell, bool right = false) {
    const auto unless_point = [cell](const RunView& run) {
      return run.is_point() ? "-" : cell(run);
    };
    return shown(Shown::for_programs, {heading, unless_point, right});
  };
  return {
      shown(Shown::for_programs, {"Series", [=](const RunView&) { return series; }, false}),
      setting("Model", &RunView::model_name),
      setting("Sequence", whole(&RunDeck::seq_length), true),
      setting("Precision",
              [](const RunView& run) { return run.deck().text("precision", "compute", "fp32"); }),
      setting("Recomputation", [](const RunView& run) { return run.deck().checkpointing(); }),
      setting("ZeRO", whole(&RunDeck::zero_stage), true),
      setting("Device", &RunView::device_name),
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

// A table for each series of the picture: runs that differ in ranks and batch alone.
std::vector<Table> scaling_tables(const Runs& runs) {
  const Naming naming = naming_of(runs, false);
  std::map<std::string, Runs> series;
  std::vector<std::string> names;  // in the order in which they come up
  for (size_t r = 0; r < runs.size(); ++r) {
    Runs& group = series[naming.names[r]];
    if (group.empty()) names.push_back(naming.names[r]);
    group.push_back(runs[r]);
  }
  std::vector<Table> tables;
  for (const std::string& name : names) {
    Runs& group = series[name];
    std::stable_sort(group.begin(), group.end(), [](const RunView& a, const RunView& b) {
      return a.summary().world_size < b.summary().world_size;
    });
    const ScalingBase base = base_of(group);
    const std::string setting =
        naming.shared + (naming.shared.empty() || name.empty() ? "" : "; ") + name;
    tables.push_back(
        table_of("scaling", setting + group.front().rates().restatement().note() + caption_of(base),
                 columns_for(base, name), group));
  }
  return tables;
}

}  // namespace gptbench
