#include "post/style.h"

#include <algorithm>

#include "post/cells.h"

namespace gptbench {

Table table_of(const std::string& style, const std::string& caption,
               const std::vector<StyleColumn>& columns, const Runs& runs) {
  Table table{caption, {}, {}};
  const bool mixed =
      std::any_of(runs.begin(), runs.end(), [](const RunView& run) { return run.is_published(); });
  if (mixed) table.columns.push_back({"Source", false});
  for (const StyleColumn& column : columns) table.columns.push_back({column.heading, column.right});
  for (const RunView& run : runs) {
    std::vector<std::string> row;
    if (mixed) row.push_back(run.is_published() ? "published" : "measured");
    for (const StyleColumn& column : columns) {
      const std::string* printed =
          column.of_flops && run.is_restated() ? nullptr : run.printed(style, column.heading);
      row.push_back(printed != nullptr ? *printed : column.cell(run));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<Runs> grouped(const Runs& runs, const std::function<std::string(const RunView&)>& key) {
  std::vector<std::string> keys;
  std::vector<Runs> groups;
  for (const RunView& run : runs) {
    const auto known = std::find(keys.begin(), keys.end(), key(run));
    if (known != keys.end()) {
      groups[static_cast<size_t>(known - keys.begin())].push_back(run);
      continue;
    }
    keys.push_back(key(run));
    groups.push_back({run});
  }
  return groups;
}

std::string figure(const RunView& run, double value, const Format& format) {
  if (!run.counts()) return run.outcome();
  return value > 0.0 ? format(value) : "-";
}

Cell figures(const std::function<double(const RunView&)>& value, const Format& format) {
  return [=](const RunView& run) { return figure(run, value(run), format); };
}

Cell figures(double Summary::*value, const Format& format) {
  return [=](const RunView& run) { return figure(run, run.summary().*value, format); };
}

Cell whole(int64_t Summary::*value) {
  return [=](const RunView& run) { return std::to_string(run.summary().*value); };
}

Cell whole(int64_t (RunView::*value)() const) {
  return [=](const RunView& run) { return std::to_string((run.*value)()); };
}

Format decimals(int digits, int significant) {
  return [=](double value) { return fixed(value, digits, significant); };
}

}  // namespace gptbench
