// The heat map of a sweep: tokens/s over the two or three keys that it varied.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "post/cells.h"
#include "post/naming.h"
#include "post/plot.h"
#include "post/style.h"
#include "post/svg_text.h"
#include "record/steps.h"

namespace gptbench {
namespace {

// A key in which runs differ.
struct Varied {
  std::string name;
  std::vector<std::string> of_run;
  std::vector<std::string> values;  // ascending, numbers as numbers
};

std::vector<std::string> ascending(const std::vector<std::string>& cells) {
  std::set<std::tuple<bool, double, std::string>> sorted;
  for (const std::string& cell : cells)
    sorted.emplace(!is_number(cell), is_number(cell) ? std::strtod(cell.c_str(), nullptr) : 0.0,
                   cell);
  std::vector<std::string> values;
  for (const auto& each : sorted) values.push_back(std::get<2>(each));
  return values;
}

// Ranks and deck keys in which runs differ and that do not follow from those before, the one with
// the most values first. Keys that decks often set by others come last.
std::vector<Varied> varied_keys(const Runs& runs) {
  static const std::set<std::string> last = {"data_parallel", "device_memory_gib"};
  std::vector<Varied> keys;
  std::vector<std::string> known(runs.size());
  const auto add = [&](const std::string& name, const Cell& cell) {
    std::vector<std::string> cells;
    for (const RunView& run : runs) cells.push_back(cell(run));
    if (follows(cells, known)) return;
    for (size_t r = 0; r < runs.size(); ++r) known[r] += "|" + cells[r];
    keys.push_back({name, cells, ascending(cells)});
  };
  add("ranks", whole(&Summary::world_size));
  for (const bool is_last : {false, true})
    for (const ConfigEntry& entry : runs.front().record().config)
      if ((entry.group == "run" ? may_decide_speed(entry) : entry.group != "output") &&
          (last.count(entry.key) > 0) == is_last)
        add(entry.key, [&](const RunView& run) { return key_cell(run, entry.group, entry.key); });
  std::stable_sort(keys.begin(), keys.end(), [](const Varied& a, const Varied& b) {
    return a.values.size() > b.values.size();
  });
  return keys;
}

// The runs of one cell: their median, or how they ended.
Box cell_of(const Runs& runs, const Box& place, double most) {
  Box box = place;
  std::vector<double> rates;
  const std::vector<std::string> labels = labels_of(runs);
  for (size_t r = 0; r < runs.size(); ++r) {
    const double rate = runs[r].counts() ? runs[r].summary().rate.tokens_per_s : 0.0;
    if (rate > 0.0)
      rates.push_back(rate);
    else
      box.inside = runs[r].outcome();
    box.tip += (r == 0 ? "" : "\n") + labels[r] +
               (rate > 0.0 ? ": " + significant(rate, 4, 1) + " tokens/s" : "");
  }
  box.style = rates.empty() ? hatched : 0;
  box.strength = std::min(0.999, median(rates) / most);
  if (rates.empty()) return box;
  box.value = median(rates);
  box.inside = significant(median(rates), 4, 1);
  return box;
}

// The runs with one value of keys[2]: keys[0] from left to right, keys[1] downwards.
Panel panel_of(const Runs& runs, const std::vector<Varied>& keys, const std::string& value,
               double most) {
  const Varied &columns = keys[0], &rows = keys[1], &panels = keys[2];
  Panel panel;
  panel.x.label = columns.name + (value.empty() ? "" : "  (" + panels.name + " " + value + ")");
  panel.y.label = rows.name;
  panel.y.downwards = true;
  panel.height = std::max(34.0 * static_cast<double>(rows.values.size()) + 10.0,
                          width_of(rows.name));  // it stands upright
  for (size_t x = 0; x < columns.values.size(); ++x)
    panel.x.ticks.emplace_back(static_cast<double>(x), columns.values[x]);
  for (size_t y = 0; y < rows.values.size(); ++y) {
    panel.y.ticks.emplace_back(static_cast<double>(y), rows.values[y]);
    for (const auto& [x, column] : panel.x.ticks) {
      Runs of_cell;
      for (size_t r = 0; r < runs.size(); ++r)
        if (columns.of_run[r] == column && rows.of_run[r] == rows.values[y] &&
            panels.of_run[r] == value)
          of_cell.push_back(runs[r]);
      if (of_cell.empty()) continue;
      const Box place = box_around(x - 0.47, x + 0.47, static_cast<double>(y), 0.45);
      Box box = cell_of(of_cell, place, most);
      box.name = columns.name + " " + column;
      panel.boxes.push_back(box);
      if (box.style == hatched || std::all_of(of_cell.begin(), of_cell.end(),
                                              [](const RunView& run) { return run.counts(); }))
        continue;
      panel.boxes.push_back(place);
      panel.boxes.back().style = hatched;
      panel.boxes.back().name = "no figures";
    }
  }
  return panel;
}

}  // namespace

Picture sweep_picture(const Runs& runs, const PlotOptions&) {
  constexpr size_t min_runs = 4, max_columns = 16, max_panels = 8;
  Picture picture{"sweep", "Tokens/s over what was varied", subtitle_of(runs)};
  Runs measured;
  double most = 0.0;
  for (const RunView& run : runs) {
    if (!run.is_measured()) continue;
    measured.push_back(run);
    if (run.counts()) most = std::max(most, run.summary().rate.tokens_per_s);
  }
  if (measured.size() < min_runs || !(most > 0.0)) return picture;
  std::vector<Varied> keys = varied_keys(measured);
  if (keys.size() == 2) keys.push_back({"", std::vector<std::string>(measured.size()), {""}});
  if (keys.size() != 3 || keys[0].values.size() > max_columns ||
      keys[2].values.size() > max_panels) {
    std::vector<std::string> names;
    for (const Varied& key : keys)
      names.push_back(key.name + " (" + std::to_string(key.values.size()) + " values)");
    picture.notes = {"drawn over two or three keys, of " + std::to_string(max_columns) + " and " +
                     std::to_string(max_panels) + " values at most; these runs differ in " +
                     (names.empty() ? "none" : join(names, ", "))};
    return picture;
  }
  for (const std::string& value : keys[2].values)
    picture.panels.push_back(panel_of(measured, keys, value, most));
  picture.notes = {"Medians where a cell holds several runs."};
  if (std::any_of(measured.begin(), measured.end(),
                  [](const RunView& run) { return !run.counts(); }))
    picture.notes.push_back("Hatched: a run of the cell has no figures.");
  return picture;
}

}  // namespace gptbench
