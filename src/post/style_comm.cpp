// Messages as nccl-tests print them (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md): of a
// calibration one row per size, of a run one row per kind of message, with the mean size.
#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "base/text.h"
#include "plan/grid.h"
#include "plan/op_spec.h"
#include "post/naming.h"
#include "post/style.h"

namespace gptbench {
namespace {

// Elements as nccl-tests count them: of these two those of one rank's part.
int64_t count_of(const MessageRate& rate) {
  const bool has_parts = rate.op == spec_of(OpKind::all_gather).name ||
                         rate.op == spec_of(OpKind::reduce_scatter).name;
  return has_parts ? rate.count / std::max<int64_t>(1, rate.ranks) : rate.count;
}

// Programs get every digit, and an empty cell where a figure is not known.
std::vector<std::string> row_of(const MessageRate& rate, bool for_programs) {
  const double algbw =
      rate.time_s > 0.0 ? static_cast<double>(rate.bytes) / rate.time_s / 1e9 : 0.0;
  const char* const unknown = for_programs ? "" : "-";
  const auto figure = [&](double value, int decimals) {
    return for_programs ? json(value) : printed("%.*f", decimals, value);
  };
  return std::vector<std::string>{rate.axis,
                                  rate.op,
                                  std::to_string(rate.ranks),
                                  rate.per_node > 0 ? std::to_string(rate.nodes()) : unknown,
                                  std::to_string(rate.bytes),
                                  rate.count > 0 ? std::to_string(count_of(rate)) : unknown,
                                  rate.type.empty() ? "-" : rate.type,
                                  rate.redop.empty() ? "-" : rate.redop,
                                  "-1",  // no operation has a root
                                  figure(1e6 * rate.time_s, 2),
                                  figure(algbw, 3),
                                  figure(algbw * bus_factor(rate.op, rate.ranks), 3),
                                  rate.wrong >= 0 ? std::to_string(rate.wrong) : unknown};
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
    // The record does not tell how a group lies that holds only some ranks of several nodes.
    const bool is_known = run.summary().nodes == 1 || rate.ranks == run.summary().world_size;
    rate.per_node = is_known ? std::min(rate.ranks, run.summary().ranks_per_node) : 0;
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
    Table programs = table;
    programs.columns.insert(programs.columns.begin(), {"Run"});
    for (const MessageRate& rate : messages_of(runs[r])) {
      table.rows.push_back(row_of(rate, false));
      programs.rows.push_back(row_of(rate, true));
      programs.rows.back().insert(programs.rows.back().begin(), labels[r]);
    }
    if (table.rows.empty())
      programs.caption = table.caption +=
          runs[r].summary().world_size == 1 ? ": none, since it is a single rank" : ": none";
    table.for_programs = {programs};
    tables.push_back(table);
  }
  return tables;
}

}  // namespace gptbench
