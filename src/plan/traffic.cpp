#include "plan/traffic.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/column_unit.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/batch.h"
#include "plan/stage_figures.h"
#include "plan/tasks.h"

namespace gptbench {
namespace {

// Shares of the array that one rank sends in a ring.
double ring_share(OpKind kind, int64_t ranks) {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return kind == OpKind::all_reduce ? 2.0 * others : others;
}

}  // namespace

void add_stage(Traffic& traffic, const Plan& plan, int64_t ranks_per_node) {
  const Grid& grid = plan.grid;
  // Bytes that one rank sends along an axis to a place of its group, -1: the next one of a ring.
  // Those of rows are shared like the sequences, which ranks of other replicas have more or fewer
  // of.
  struct Sent {
    double of_rows = 0.0, other = 0.0;
  };
  std::map<std::pair<Axis, int32_t>, Sent> sent;
  for_each_operation(plan, [&](int32_t i, int64_t rows, int64_t times) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    if (!is_message(op.kind) || op.kind == OpKind::receive) return;
    const double payload = static_cast<double>(payload_bytes(op, rows) * times);
    const MessageSize& size = op.as<MessageSize>();
    const int32_t peer = size.peer;
    Sent& each = sent[{op.axis, peer}];
    (size.count.columns > 0 ? each.of_rows : each.other) +=
        peer >= 0 ? payload : payload * ring_share(op.kind, grid.size_of(op.axis));
  });
  const int64_t global_batch = plan.config.batch.global_batch_size;
  const auto sequences = [&](int64_t data) {
    return static_cast<double>(sequences_of(global_batch, grid.data, data).count);
  };
  const double own_sequences = sequences(plan.at.data);
  // A context ring's peer is a neighbour of plan.rank: the same step away from every rank.
  for (const auto& [where, bytes] : sent) {
    const auto& [axis, peer] = where;
    const int64_t ranks = grid.size_of(axis), own = grid.place_of(plan.rank, axis);
    const int64_t step = peer >= 0 ? peer - own : 1;
    NodeTraffic& total = traffic[axis];
    for (int64_t rank = 0; rank < grid.size(); ++rank) {
      const Coordinates at = grid.coordinates_of(rank);
      if (at.pipeline != plan.at.pipeline) continue;
      const double of_rows =
          own_sequences > 0.0 ? bytes.of_rows * sequences(at.data) / own_sequences : 0.0;
      const int64_t place = (grid.place_of(rank, axis) + step + ranks) % ranks;
      const bool same = grid.member_of(rank, axis, place) / ranks_per_node == rank / ranks_per_node;
      (same ? total.within_bytes : total.between_bytes) += of_rows + bytes.other;
    }
  }
}

Traffic traffic_of(const Plan& plan, int64_t ranks_per_node) {
  Traffic traffic;
  for_each_stage(plan, [&](const Plan& stage) { add_stage(traffic, stage, ranks_per_node); });
  return traffic;
}

std::string traffic_text(const Traffic& traffic, int64_t ranks_per_node) {
  double most = 0.0;
  for (const auto& [axis, bytes] : traffic)
    most = std::max({most, bytes.within_bytes, bytes.between_bytes});
  const ColumnUnit unit = bytes_unit(static_cast<int64_t>(most));
  std::string text =
      printed("%-32s%16s%16s\n", "Bytes sent per step, all ranks", "within nodes", "between nodes");
  for (const auto& [axis, bytes] : traffic)
    text += printed("  %-30s%16s%16s\n", name_of(axis), unit.text(bytes.within_bytes).c_str(),
                    unit.text(bytes.between_bytes).c_str());
  if (traffic.empty()) text += "  none\n";
  return text + printed("  %lld rank%s per node; collectives counted as rings in rank order\n",
                        static_cast<long long>(ranks_per_node), ranks_per_node == 1 ? "" : "s");
}

std::string traffic_json(const Traffic& traffic) {
  std::vector<std::string> rows;
  for (const auto& [axis, bytes] : traffic)
    rows.push_back(JsonObject()
                       .add("axis", name_of(axis))
                       .add("within_bytes", bytes.within_bytes)
                       .add("between_bytes", bytes.between_bytes)
                       .text());
  return json_array(rows);
}

}  // namespace gptbench
