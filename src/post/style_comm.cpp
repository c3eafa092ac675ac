// Messages as nccl-tests print them (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md): of a
// calibration one row per size, of a run one row per kind of message, with the mean size.
#include <numeric>

#include "base/text.h"
#include "plan/grid.h"
#include "post/naming.h"
#include "post/style.h"

namespace gptbench {
namespace {

std::vector<std::string> row_of(const MessageRate& rate) {
  const double algbw =
      rate.time_s > 0.0 ? static_cast<double>(rate.bytes) / rate.time_s / 1e9 : 0.0;
  return std::vector<std::string>{rate.axis,
                                  rate.op,
                                  std::to_string(rate.ranks),
                                  rate.per_node > 0 ? std::to_string(rate.nodes()) : "-",
                                  std::to_string(rate.bytes),
                                  rate.count > 0 ? std::to_string(rate.count) : "-",
                                  rate.type.empty() ? "-" : rate.type,
                                  rate.redop.empty() ? "-" : rate.redop,
                                  "-1",  // no operation has a root
                                  printed("%.2f", 1e6 * rate.time_s),
                                  printed("%.3f", algbw),
                                  printed("%.3f", algbw * bus_factor(rate.op, rate.ranks)),
                                  rate.wrong >= 0 ? std::to_string(rate.wrong) : "-"};
}

// A figure that is not known is an empty cell to programs.
Table with_numbers(Table table) {
  for (auto& row : table.rows)
    for (size_t c = 0; c < row.size(); ++c)
      if (table.columns[c].right && row[c] == "-") row[c].clear();
  return table;
}

// Ranks of a group along the axis; 1 where no axis has this name.
int64_t ranks_of(const RunView& run, const std::string& name) {
  const Grid grid = {run.deck().tensor_parallel(), run.deck().context_parallel(),
                     run.deck().pipeline_parallel(), run.deck().data_parallel(),
                     run.deck().integer("parallel", "zero_group", 0)};
  for (int axis = 0; axis < num_axes; ++axis)
    if (name_of(static_cast<Axis>(axis)) == name) return grid.size_of(static_cast<Axis>(axis));
  return 1;
}

// The messages of a run: sums over calls and ranks, of which time ends when completion is seen.
std::vector<MessageRate> messages_of(const RunView& run) {
  std::vector<MessageRate> messages = run.record().calibration.messages;
  for (const CommEntry& entry : run.record().comm) {
    const auto sum = [](const auto& of_ranks) {
      return std::accumulate(of_ranks.begin(), of_ranks.end(), 0.0);
    };
    const double bytes = sum(entry.bytes), calls = sum(entry.count), time_s = sum(entry.time_s);
    if (calls <= 0.0 || time_s <= 0.0) continue;
    MessageRate rate;
    rate.axis = entry.axis;
    rate.op = entry.op;
    rate.ranks = ranks_of(run, entry.axis);
    rate.per_node = 0;  // not known
    rate.bytes = static_cast<int64_t>(bytes / calls);
    rate.time_s = time_s / calls;
    messages.push_back(rate);
  }
  return messages;
}

}  // namespace

std::vector<Table> comm_tables(const Runs& runs) {
  const std::vector<std::string> labels = labels_of(runs);
  std::vector<Table> tables;
  for (size_t r = 0; r < runs.size(); ++r) {
    Table table{"Messages of " + labels[r], {}, {}};
    for (const char* heading :
         {"Axis", "Operation", "Ranks", "Nodes", "Size (B)", "Count", "Type", "Redop", "Root",
          "Time (us)", "Algbw (GB/s)", "Busbw (GB/s)", "#wrong"}) {
      const std::string text = heading;
      const bool is_text =
          text == "Axis" || text == "Operation" || text == "Type" || text == "Redop";
      table.columns.push_back({text, !is_text});
    }
    for (const MessageRate& rate : messages_of(runs[r])) table.rows.push_back(row_of(rate));
    table.for_programs = {with_numbers(table)};
    tables.push_back(table);
  }
  return tables;
}

}  // namespace gptbench
