#include "post/published_matrix.h"

#include <algorithm>

#include "base/error.h"

namespace gptbench {
namespace {

constexpr const char* corner = "model \\ num_node * num_gpus";

// A line of a cell: what it counts, and the limit of that, where there is one.
struct Line {
  const char* unit;
  const char *figure, *limit;
};
constexpr Line lines[] = {{"samples/sec", "samples_per_s", ""},
                          {"tflops/gpu", "tflops_per_gpu", ""},
                          {"GB", "memory_used_gb", "memory_total_gb"},
                          {"W", "power_w", "power_limit_w"},
                          {"%", "utilisation_pct", ""}};

// The digits behind the first `mark`; "" where there is none.
std::string number_after(const std::string& text, const std::string& mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  const size_t begin = text.find_first_not_of(" =", at + mark.size());
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

std::map<std::string, std::string> of_label(std::string label) {
  const std::string source = "published: ";
  if (label.rfind(source, 0) == 0) label = label.substr(source.size());
  return {{"model", label.substr(0, label.find_first_of(" ("))},
          {"mp", number_after(label, "mp")},
          {"pp", number_after(label, "pp=")},
          {"zero_stage", number_after(label, "ZeRO")},
          {"offload", label.find("offload") == std::string::npos ? "none" : "cpu"},
          {"micro_batch_size", number_after(label, "micro-batch")},
          {"grad_accum", number_after(label, "grad accum")}};
}

void add_cell(const std::string& cell, std::map<std::string, std::string>& texts) {
  if (trim(cell) == "OOM") texts["samples_per_s"] = "OOM";
  for (const std::string& line : split(cell, '\n')) {
    for (const Line& each : lines) {
      const std::string unit = each.unit;
      if (line.size() <= unit.size() || line.substr(line.size() - unit.size()) != unit) continue;
      const std::vector<std::string> parts =
          split(line.substr(0, line.size() - unit.size()), each.limit[0] == '\0' ? '\n' : '/');
      if (!parts.empty()) texts[each.figure] = parts[0];
      if (parts.size() > 1) texts[each.limit] = parts[1];
      break;
    }
  }
}

}  // namespace

std::vector<CsvRow> unfolded(const std::string& path, std::vector<CsvRow> rows) {
  if (rows.empty() || rows.front().fields.front() != corner) return rows;
  const std::vector<std::string>& machines = rows.front().fields;
  const std::vector<std::string> columns = split(matrix_columns, ',');
  std::vector<CsvRow> list = {{rows.front().line, columns}};
  for (size_t r = 1; r < rows.size(); ++r) {
    const std::vector<std::string>& fields = rows[r].fields;
    for (size_t c = 1; c < std::min(fields.size(), machines.size()); ++c) {
      if (trim(fields[c]).empty()) continue;
      const std::vector<std::string> counts = split(machines[c], '*');
      if (counts.size() != 2)
        throw Error(Exit::usage, path + ":" + std::to_string(rows.front().line) + ": column '" +
                                     machines[c] + "' is not nodes*devices, as in 4*8");
      std::map<std::string, std::string> texts = of_label(fields[0]);
      texts["nodes"] = counts[0];
      texts["gpus_per_node"] = counts[1];
      add_cell(fields[c], texts);
      CsvRow row{rows[r].line, {}};
      for (const std::string& column : columns) row.fields.push_back(texts[column]);
      list.push_back(std::move(row));
    }
  }
  return list;
}

std::string matrix_cell(const PublishedRow& row) {
  if (row.text("samples_per_s") == "OOM") return "OOM";
  std::string cell;
  for (const Line& line : lines) {
    const std::string figure = row.text(line.figure), limit = row.text(line.limit);
    if (figure.empty()) continue;
    cell +=
        (cell.empty() ? "" : "\n") + figure + (limit.empty() ? "" : "/" + limit) + " " + line.unit;
  }
  return cell;
}

}  // namespace gptbench
