#include "post/style.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/json.h"
#include "base/units.h"
#include "post/cells.h"
#include "post/common_peak.h"
#include "record/flops.h"

namespace gptbench {

namespace {

// "7718.0" of "7718.0 MiB", "4" of "4 (1.5Hz)"; "" where the cell is no figure ("OOM", "-").
std::string number_of(const std::string& cell, const std::string& unit) {
  const size_t at_unit = unit.empty() ? std::string::npos : cell.find(unit);
  const std::string number = cell.substr(0, std::min(cell.find(' '), at_unit));
  return is_number(number) ? number : "";
}

// The largest percentage among cells like "110.9" and "46.60 bf16, 23.30 fp8" (where the first
// figure is the larger one), as a fraction.
double largest_percent(const std::vector<std::string>& cells) {
  double largest = 0.0;
  for (const std::string& cell : cells)
    largest = std::max(largest, 0.01 * std::strtod(number_of(cell, "%").c_str(), nullptr));
  return largest;
}

// A figure with as many digits as the record has; "" where it is not known.
std::string every_digit(const std::optional<double>& figure) {
  return figure && std::isfinite(*figure) ? json(*figure) : "";
}

// Styles of published tables, whose figures are those that are published: programs too get them
// with the published digits.
bool is_of_a_publication(const std::string& style) {
  return style == "fugaku" || style == "mpt" || style == "zero" || style == "megatron";
}

void add_column(Table& table, const std::string& heading, bool right,
                const std::vector<std::string>& cells) {
  table.columns.push_back({heading, right});
  for (size_t r = 0; r < cells.size(); ++r) table.rows[r].push_back(cells[r]);
}

}  // namespace

Table table_of(const std::string& style, const std::string& caption,
               const std::vector<StyleColumn>& columns, const Runs& runs) {
  const bool has_mfu = std::any_of(columns.begin(), columns.end(), [](const StyleColumn& column) {
    return column.heading.rfind("MFU", 0) == 0;
  });
  const std::string peaks = has_mfu ? peaks_of(runs) : "";
  Table people{caption + (peaks.empty() ? "" : "; " + peaks),
               {},
               std::vector<std::vector<std::string>>(runs.size())};
  Table programs = people;
  double mfu = 0.0, hfu = 0.0;  // the largest that is printed, fractions
  const auto add = [&](const StyleColumn& column) {
    std::vector<std::string> cells, numbers;
    for (const RunView& run : runs) {
      const std::string* printed = column.of_flops && run.rates().restatement().any()
                                       ? nullptr
                                       : run.printed(style, column.heading);
      cells.push_back(printed != nullptr ? *printed : column.cell(run));
      const bool has_figure =
          printed == nullptr && column.cell.figure && !is_of_a_publication(style);
      numbers.push_back(has_figure ? every_digit(column.cell.figure(run))
                                   : number_of(cells.back(), column.unit));
    }
    const std::string unit = column.unit.empty() ? "" : " (" + column.unit + ")";
    if (column.shown != Shown::for_programs)
      add_column(people, column.heading, column.right, cells);
    if (column.shown != Shown::for_people)
      add_column(programs, column.heading + unit, column.right, column.right ? numbers : cells);
    if (column.heading.rfind("MFU", 0) == 0) mfu = std::max(mfu, largest_percent(cells));
    if (column.heading.rfind("HFU", 0) == 0) hfu = std::max(hfu, largest_percent(cells));
  };
  if (std::any_of(runs.begin(), runs.end(), [](const RunView& run) { return !run.is_measured(); }))
    add({"Source", &RunView::source, false});
  for (const StyleColumn& column : columns) add(column);
  add({"Status", [](const RunView& run) { return run.counts() ? "OK" : run.outcome(); }, false,
       false, Shown::for_programs});
  std::vector<std::string> notes = has_mfu ? reasons_without_mfu(runs) : std::vector<std::string>{};
  if (const std::string warning = impossible_utilisation(mfu, hfu); !warning.empty())
    notes.push_back(warning);
  for (const std::string& note : notes) people.caption += "; " + note;
  people.warnings = notes;
  people.for_programs = {programs};
  return people;
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

std::string key_cell(const RunView& run, const std::string& group, const std::string& key) {
  const ConfigEntry* const entry = find_entry(run.record(), group, key);
  if (entry == nullptr) return "-";
  if (const auto* text = std::get_if<std::string>(&entry->value)) return *text;
  if (const auto* logical = std::get_if<bool>(&entry->value)) return *logical ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&entry->value)) return std::to_string(*number);
  return json(std::get<double>(entry->value));
}

bool follows(const std::vector<std::string>& derived, const std::vector<std::string>& known) {
  std::map<std::string, std::string> first;
  for (size_t r = 0; r < known.size(); ++r)
    if (first.emplace(known[r], derived[r]).first->second != derived[r]) return false;
  return true;
}

std::string figure(const RunView& run, double value, const Format& format) {
  if (!run.counts()) return run.outcome();
  return value > 0.0 ? format(value) : "-";
}

Cell figures(const std::function<double(const RunView&)>& value, const Format& format) {
  return {[=](const RunView& run) { return figure(run, value(run), format); },
          [=](const RunView& run) {
            const double known = run.counts() ? value(run) : 0.0;
            return known > 0.0 ? std::optional(known) : std::nullopt;
          }};
}

Cell fact(const std::function<double(const RunView&)>& value, const Format& format) {
  return {[=](const RunView& run) { return value(run) > 0.0 ? format(value(run)) : "-"; },
          [=](const RunView& run) {
            return value(run) > 0.0 ? std::optional(value(run)) : std::nullopt;
          }};
}

Cell whole(int64_t Summary::*value) {
  return [=](const RunView& run) { return std::to_string(run.summary().*value); };
}

Cell whole(int64_t (RunDeck::*value)() const) {
  return [=](const RunView& run) { return std::to_string((run.deck().*value)()); };
}

std::optional<double> memory_used_mib(const RunView& run) {
  const double bytes = run.summary().memory_used_bytes();
  return bytes > 0.0 ? std::optional(bytes / static_cast<double>(MiB)) : std::nullopt;
}

Format decimals(int digits, int significant) {
  return [=](double value) { return fixed(value, digits, significant); };
}

}  // namespace gptbench
