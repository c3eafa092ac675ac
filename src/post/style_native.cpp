#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "post/cells.h"
#include "post/style.h"

namespace gptbench {
namespace {

// "dp4 tp2 z1": the sizes that are not 1, data parallelism always, and the ZeRO stage.
std::string layout_cell(const RunView& run) {
  std::string cell = "dp" + std::to_string(run.deck().data_parallel());
  for (const auto& [name, size] : {std::pair{" tp", run.deck().tensor_parallel()},
                                   std::pair{" pp", run.deck().pipeline_parallel()},
                                   std::pair{" cp", run.deck().context_parallel()}})
    if (size > 1) cell += name + std::to_string(size);
  return cell + " z" + std::to_string(run.deck().zero_stage());
}

// The spread of the timed steps, in percent of their median; 0 for a projection, which has no
// steps.
double spread_percent(const RunView& run) {
  if (run.is_projected()) return 0.0;
  const RateFigures& rate = run.summary().rate;
  const double range_s = rate.sec_per_it_max - rate.sec_per_it_min;
  return rate.sec_per_it > 0.0 ? 100.0 * range_s / rate.sec_per_it : 0.0;
}

double tflops_per_device(const RunView& run) {
  return run.rates().tflops();
}

double tflops_in_total(const RunView& run) {
  return tflops_per_device(run) * static_cast<double>(run.summary().world_size);
}

double joules_per_token(const RunView& run) {
  return run.summary().device.energy_j_per_token.value_or(0.0);
}

double tokens_per_joule(const RunView& run) {
  const double joules = joules_per_token(run);
  return joules > 0.0 ? 1.0 / joules : 0.0;
}

double gflops_per_watt(const RunView& run) {
  const double watt = run.summary().device.power_w.value_or(0.0);
  return watt > 0.0 ? 1e3 * tflops_per_device(run) / watt : 0.0;
}

double held_out_loss(const RunView& run) {
  return run.summary().convergence.held_out_loss.value_or(0.0);
}

double time_to_target(const RunView& run) {
  return run.summary().convergence.time_to_target_s;
}

std::string verdict_cell(const RunView& run) {
  return run.counts() ? run.record().outcome.verdict : run.outcome();
}

// Settings of a run. Where all runs agree, a setting stands in the caption, for programs in a
// column all the same.
std::vector<StyleColumn> settings() {
  const auto key = [](const char* group, const char* name) {
    return [=](const RunView& run) { return key_cell(run, group, name); };
  };
  const auto unless_point = [](const Cell& cell) -> Cell {
    return [cell](const RunView& run) { return run.is_point() ? "-" : cell(run); };
  };
  return {
      {"Model", unless_point(&RunView::model_name), false},
      {"Sequence", unless_point(whole(&RunDeck::seq_length))},
      {"Batch", unless_point(whole(&RunDeck::global_batch))},
      {"Precision", key("precision", "compute"), false},
      {"Recomputation", unless_point([](const RunView& run) { return run.deck().checkpointing(); }),
       false},
      {"Layout", unless_point(layout_cell), false},
      {"Ranks", whole(&Summary::world_size)},
      {"Nodes", unless_point(whole(&Summary::nodes))},
      {"Device", &RunView::device_name, false},
      {"FLOPs", [](const RunView& run) { return run.rates().convention(); }, false, true},
      {"Date", [](const RunView& run) { return run.record().date_utc.substr(0, 10); }, false},
  };
}

std::vector<std::string> cells_of(const StyleColumn& column, const Runs& runs) {
  std::vector<std::string> cells;
  for (const RunView& run : runs) cells.push_back(column.cell(run));
  return cells;
}

bool is_constant(const std::vector<std::string>& cells) {
  return std::set<std::string>(cells.begin(), cells.end()).size() < 2;
}

// Deck keys of all runs in which they differ and that do not follow from a column before them: what
// a sweep varied. `known` are the cells of those columns.
std::vector<StyleColumn> varied_keys(const Runs& runs,
                                     std::vector<std::vector<std::string>> known) {
  static const std::set<std::string> of_a_run = {"run.name", "output.directory"};
  std::vector<StyleColumn> columns;
  if (runs.empty()) return columns;
  for (const ConfigEntry& entry : runs.front().record().config) {
    if (of_a_run.count(entry.group + "." + entry.key) > 0) continue;
    const bool is_text = std::holds_alternative<std::string>(entry.value) ||
                         std::holds_alternative<bool>(entry.value);
    const StyleColumn column = {entry.key,
                                [group = entry.group, key = entry.key](const RunView& run) {
                                  return key_cell(run, group, key);
                                },
                                !is_text};
    const std::vector<std::string> cells = cells_of(column, runs);
    const bool lacks_some = std::find(cells.begin(), cells.end(), "-") != cells.end();
    if (lacks_some || is_constant(cells) ||
        std::any_of(known.begin(), known.end(),
                    [&](const auto& others) { return follows(cells, others); }))
      continue;
    known.push_back(cells);
    columns.push_back(column);
  }
  return columns;
}

// Figures; those of energy where a run has them.
std::vector<StyleColumn> figure_columns(const Runs& runs) {
  const auto has = [&](const auto& value) {
    return std::any_of(runs.begin(), runs.end(),
                       [&](const RunView& run) { return value(run) > 0.0; });
  };
  std::vector<StyleColumn> columns = {
      {"Time (s)", figures(&Summary::rate, &RateFigures::sec_per_it, decimals(3, 3))},
      {"Spread (%)", figures(spread_percent, decimals(1))},
      {"Tokens/s", figures(&Summary::rate, &RateFigures::tokens_per_s, decimals(0, 3))},
      {"TFLOP/s per device", figures(tflops_per_device, decimals(2, 3)), true, true},
      {"TFLOP/s total", figures(tflops_in_total, decimals(2, 3)), true, true},
      {"MFU (%)", figures([](const RunView& r) { return r.rates().mfu_percent(); }, decimals(1)),
       true, true},
      shown(Shown::for_programs,
            {"Peak (TFLOP/s)",
             figures([](const RunView& r) { return r.rates().peak_tflops(); }, decimals(3, 3)),
             true, true}),
      // Known for many runs that have no other figure.
      {"Memory (MiB)",
       {[](const RunView& run) {
          const std::optional<double> mib = memory_used_mib(run);
          return mib ? fixed(*mib, 1) : run.counts() ? "-" : run.outcome();
        },
        memory_used_mib}}};
  if (has(tokens_per_joule)) {
    columns.push_back(shown(Shown::for_programs,
                            {"Energy (J/token)", figures(joules_per_token, decimals(3, 3))}));
    columns.push_back({"Tokens/J", figures(tokens_per_joule, decimals(2, 3))});
  }
  if (has(gflops_per_watt))
    columns.push_back({"GFLOPS/W", figures(gflops_per_watt, decimals(2, 3)), true, true});
  if (has(held_out_loss))
    columns.push_back(in_unit("nat", {"Held-out loss", figures(held_out_loss, decimals(3, 3))}));
  if (has(time_to_target))
    columns.push_back({"To target (s)", figures(time_to_target, decimals(1, 3))});
  columns.push_back({"Verdict", verdict_cell, false});
  if (has([](const RunView& run) { return run.summary().rules.outcome.empty() ? 0.0 : 1.0; }))
    columns.push_back(
        {"Rules", [](const RunView& run) { return run.summary().rules.outcome; }, false});
  const bool notes = std::any_of(runs.begin(), runs.end(),
                                 [](const RunView& run) { return !run.skipped_note().empty(); });
  if (notes) columns.push_back({"Notes", &RunView::skipped_note, false});
  return columns;
}

}  // namespace

std::vector<Table> native_tables(const Runs& runs) {
  std::vector<StyleColumn> columns = {
      {"Run", [](const RunView& run) { return run.deck().text("run", "name"); }, false}};
  std::vector<std::string> constant;
  std::vector<std::vector<std::string>> known;
  std::vector<StyleColumn> asked = settings();
  const StyleColumn problem_class = {
      "Class", [](const RunView& run) { return run.deck().text("run", "class"); }, false};
  const std::vector<std::string> classes = cells_of(problem_class, runs);
  if (std::any_of(classes.begin(), classes.end(), [](const auto& name) { return !name.empty(); }))
    asked.insert(asked.begin(), problem_class);
  for (StyleColumn& column : asked) {
    known.push_back(cells_of(column, runs));
    const bool tells_runs_apart = column.heading == "Layout" || column.heading == "Ranks";
    if (is_constant(known.back()) && (runs.size() > 1 || !tells_runs_apart)) {
      column.shown = Shown::for_programs;
      if (!runs.empty() && !known.back().front().empty())
        constant.push_back(column.heading + " " + known.back().front());
    }
    columns.push_back(column);
  }
  for (const StyleColumn& column : varied_keys(runs, known)) columns.push_back(column);
  for (const StyleColumn& column : figure_columns(runs)) columns.push_back(column);
  const std::string caption = constant.empty() ? "Runs" : "Runs: " + join(constant, ", ");
  return {table_of("native", caption, columns, runs)};
}

}  // namespace gptbench
