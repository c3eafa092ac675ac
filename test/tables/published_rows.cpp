#include "published_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "post/csv.h"
#include "post/style.h"

namespace gptbench {
namespace {

std::vector<Texts> csv_at(const std::string& path) {
  const std::vector<CsvRow> lines = parse_csv(path, text_of(path));
  std::vector<Texts> rows;
  for (size_t r = 1; r < lines.size(); ++r) {
    Texts row;
    for (size_t c = 0; c < lines[r].fields.size(); ++c)
      row[lines[0].fields.at(c)] = lines[r].fields[c];
    rows.push_back(std::move(row));
  }
  return rows;
}

bool has(const Texts& row, const Texts& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [&](const auto& input) {
    const auto found = row.find(input.first);
    return found == row.end() || found->second == input.second;
  });
}

// Half a unit of the last digit of a printed figure.
double rounding(const std::string& printed) {
  const size_t point = printed.find('.');
  const size_t decimals = point == std::string::npos ? 0 : printed.size() - point - 1;
  return 0.5 * std::pow(10.0, -static_cast<double>(decimals));
}

// How far a figure computed from a printed time or throughput may lie from the printed one, beside
// the rounding of both, since what it is computed from was rounded or cut: a share of it.
struct Slack {
  double below = 0.0, above = 0.0;
  double constant_below = 0.0, constant_above = 0.0;
};

Slack slack_of(const std::string& style, const std::string& column, const Row& row) {
  const Summary& s = row.published->record.summary;
  if (style == "fugaku") {  // times are printed to 0.05 s
    const double share = 0.05 / (s.rate.sec_per_it - 0.05);
    return {share, share};
  }
  if (style == "zero") {
    const std::string time = figure(row, "time_per_it_ms");
    const double share = rounding(time) / std::atof(time.c_str());
    return {share, share};
  }
  // mpt: throughput is cut to whole tokens and sequences. Rows of MP Mode PURE print Model TFLOP as
  // 3.12 times the rounded MFU.
  if (column.find("Throughput (") == 0) return {0.0, 0.0, 0.0, 1.0};
  const double rounded = figure(row, "mp_mode") == "PURE" ? 3.12 * 0.005 : 0.0;
  if (column == "Model TFLOP") return {1.0 / s.rate.tokens_per_s, 0.0, rounded, rounded};
  return {1.0 / s.rate.tokens_per_s, 0.0};
}

}  // namespace

std::string text_of(const std::string& path) {
  std::ifstream in(std::string(GPTBENCH_SOURCE_DIR) + "/" + path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Sweep sweep_of(const std::string& table) {
  const std::string path = "input/" + table + "/sweep.in";
  return expand_sweep(path, text_of(path), {});
}

std::vector<Row> rows_of(const Sweep& sweep, const std::vector<std::string>& figure_files) {
  const std::vector<Texts> inputs = csv_at("test/tables/" + sweep.name + ".csv");
  EXPECT_EQ(inputs.size(), sweep.rows.size());
  std::vector<Row> rows;
  for (size_t r = 0; r < std::min(inputs.size(), sweep.rows.size()); ++r)
    rows.push_back({r + 1, &sweep, &sweep.rows[r], inputs[r], {}, std::nullopt});
  for (const std::string& file : figure_files) {
    const std::vector<Texts> figures = csv_at("test/reference/" + file);
    std::vector<PublishedRun> runs =
        read_published(std::string(GPTBENCH_SOURCE_DIR) + "/test/reference/" + file);
    for (size_t f = 0; f < figures.size(); ++f) {
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& each) {
        return !each.published && has(figures[f], each.inputs);
      });
      if (row == rows.end()) {
        ADD_FAILURE() << file << ": row " << f + 1 << " is none of " << sweep.path;
        continue;
      }
      row->figures = figures[f];
      row->published = std::move(runs[f]);
    }
  }
  return rows;
}

std::string figure(const Row& row, const std::string& column) {
  const auto found = row.figures.find(column);
  const std::string text = found == row.figures.end() ? "" : found->second;
  return text == "-" ? "" : text;
}

std::vector<std::string> departures(const std::string& style, const Row& row,
                                    const std::vector<std::string>& columns) {
  std::vector<std::string> found;
  if (!row.published || row.published->record.summary.rate.sec_per_it <= 0.0) return found;
  Table table;
  for (const Style& each : styles)
    if (style == each.name) table = each.tables({RunView(row.published->record)}).at(0);
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const std::string& column = table.columns[c].heading;
    if (!contains(columns, column)) continue;
    const std::string ours = table.rows[0][c], theirs = row.published->cells.by_heading.at(column);
    const Slack slack = slack_of(style, column, row);
    const double a = std::atof(ours.c_str()), b = std::atof(theirs.c_str());
    const double digits = (rounding(ours) + rounding(theirs)) * (1.0 + 1e-9);
    if (a - b > digits + a * slack.above + slack.constant_above ||
        b - a > digits + a * slack.below + slack.constant_below)
      found.push_back(column + " " + theirs + ", from its columns " + ours);
  }
  return found;
}

}  // namespace gptbench
