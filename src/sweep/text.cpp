// A sweep as text: its rows as decks and as a table.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/json.h"
#include "base/text.h"
#include "sweep/sweep.h"

namespace gptbench {
namespace {

constexpr size_t width = 80;

std::string count_of(int64_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// A path in a comment: what would end the line is shown as '?'.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return text;
}

std::string padded(const std::string& text, size_t columns, bool right) {
  const std::string blanks(text.size() < columns ? columns - text.size() : 0, ' ');
  return right ? blanks + text : text + blanks;
}

struct TableText {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> cells;  // [row][column]
  std::vector<size_t> widths;
  size_t width = 0;
};

// Whether all rows have the same value in column c; never where there is one row.
bool is_the_same(const Sweep& sweep, size_t c) {
  return sweep.rows.size() > 1 &&
         std::all_of(sweep.rows.begin(), sweep.rows.end(), [&](const SweepRow& row) {
           return row.values[c] == sweep.rows.front().values[c];
         });
}

TableText table_text(const Sweep& sweep) {
  TableText table;
  table.headings = {"row", "ranks", "nodes"};
  std::vector<size_t> shown;
  for (size_t c = 0; c < sweep.columns.size(); ++c) {
    if (sweep.columns[c] == "ranks" || sweep.columns[c] == "nodes") continue;
    if (is_the_same(sweep, c)) continue;
    shown.push_back(c);
    table.headings.push_back(sweep.columns[c]);
  }
  for (const SweepRow& row : sweep.rows) {
    table.cells.push_back(
        {std::to_string(row.number), std::to_string(row.ranks), std::to_string(row.nodes)});
    for (const size_t c : shown) table.cells.back().push_back(row.values[c]);
  }
  for (size_t c = 0; c < table.headings.size(); ++c) {
    size_t most = table.headings[c].size();
    for (const auto& row : table.cells) most = std::max(most, row[c].size());
    table.widths.push_back(most);
    table.width += most + (c > 0 ? 2 : 0);
  }
  return table;
}

// A number where the deck's value is one, else text.
std::string value_json(const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0' && std::isfinite(number);
  return is_number ? json(number) : json(value);
}

// Why row r is left out or refused; "" where it is neither.
std::string reason_of(const Sweep& sweep, const std::vector<std::string>& left_out, size_t r) {
  const std::string& refused = sweep.rows[r].refused;
  return refused.empty() && r < left_out.size() ? left_out[r] : refused;
}

}  // namespace

std::string row_deck_text(const Sweep& sweep, const SweepRow& row) {
  return "! Row " + std::to_string(row.number) + " of " + one_line(sweep.path) + ": " +
         count_of(row.ranks, "rank") + " on " + count_of(row.nodes, "node") + ".\n" +
         sweep.origins + deck_text(row.deck);
}

std::string sweep_table(const Sweep& sweep, const std::vector<std::string>& left_out) {
  const auto reason = [&](size_t r) { return reason_of(sweep, left_out, r); };
  int64_t kept = 0;
  for (size_t r = 0; r < sweep.rows.size(); ++r) kept += reason(r).empty() ? 1 : 0;
  const int64_t all = static_cast<int64_t>(sweep.rows.size());
  const std::string not_kept = sweep.config.prune == Prune::none ? "refused" : "left out";
  const std::string others = std::to_string(all - kept) + " " + not_kept;
  std::string out =
      hanging("", "Sweep " + sweep.name + ": " + count_of(all, "row") + ", " +
                      std::to_string(kept) + " to run" + (kept < all ? ", " + others : "") + ".");

  std::vector<std::string> the_same;
  for (size_t c = 0; c < sweep.columns.size(); ++c)
    if (is_the_same(sweep, c))
      the_same.push_back(sweep.columns[c] + "=" + sweep.rows.front().values[c]);
  if (!the_same.empty()) out += hanging("In all rows: ", join(the_same, ", "));

  const TableText table = table_text(sweep);
  const bool fits = table.width <= width;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t c = 0; c < cells.size(); ++c)
      text += (c > 0 ? "  " : "") + padded(cells[c], table.widths[c], c < 3);
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  if (fits) out += line(table.headings);
  const std::string indent(table.widths[0] + 2, ' ');
  for (size_t r = 0; r < sweep.rows.size(); ++r) {
    const std::vector<std::string>& cells = table.cells[r];
    if (fits) {
      out += line(cells);
    } else {
      std::vector<std::string> parts = {count_of(sweep.rows[r].ranks, "rank") + " on " +
                                        count_of(sweep.rows[r].nodes, "node")};
      for (size_t c = 3; c < cells.size(); ++c) parts.push_back(table.headings[c] + "=" + cells[c]);
      out += hanging(padded(cells[0], table.widths[0], true) + "  ", join(parts, ", "));
    }
    if (!reason(r).empty()) out += hanging(indent + not_kept + ": ", reason(r));
  }
  return out + std::to_string(all) + " rows, " + others + "\n";
}

std::string sweep_json(const Sweep& sweep, const std::vector<std::string>& left_out) {
  std::vector<std::string> rows;
  int64_t without = 0;
  for (size_t r = 0; r < sweep.rows.size(); ++r) {
    const SweepRow& row = sweep.rows[r];
    JsonObject values;
    for (size_t c = 0; c < sweep.columns.size(); ++c)
      values.add_json(sweep.columns[c], value_json(row.values[c]));
    const std::string reason = reason_of(sweep, left_out, r);
    without += reason.empty() ? 0 : 1;
    rows.push_back(JsonObject()
                       .add("number", row.number)
                       .add("name", row.name)
                       .add("ranks", row.ranks)
                       .add("nodes", row.nodes)
                       .add_json("values", values.text())
                       .add_json("left_out", reason.empty() ? "null" : json(reason))
                       .text());
  }
  return JsonObject()
      .add("name", sweep.name)
      .add("directory", sweep.directory)
      .add_json("rows", json_array(rows))
      .add("left_out", without)
      .text();
}

}  // namespace gptbench
