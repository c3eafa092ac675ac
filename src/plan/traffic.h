// Bytes that ranks send per step, by axis: to ranks of their own node and to other nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "plan/plan.h"

namespace gptbench {

struct NodeTraffic {
  double within_bytes = 0.0, between_bytes = 0.0;
};
using Traffic = std::map<Axis, NodeTraffic>;

// Adds what all ranks of the stage of plan.rank send. Ranks fill nodes in their order. A collective
// counts as a ring in rank order: of an array of S bytes each of n ranks sends S (n - 1) / n to the
// next one, twice in an all-reduce. Example, 4 ranks on 2 nodes, data = 4: of each 3/4 S, ranks 0
// and 2 send within their node, 1 and 3 to the other.
void add_stage(Traffic& traffic, const Plan& plan, int64_t ranks_per_node);
// Traffic of all stages; plans each of them.
Traffic traffic_of(const Plan& plan, int64_t ranks_per_node);

std::string traffic_text(const Traffic& traffic, int64_t ranks_per_node);
// [{"axis": ..., "within_bytes": ..., "between_bytes": ...}, ...]
std::string traffic_json(const Traffic& traffic);

}  // namespace gptbench
