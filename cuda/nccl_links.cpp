// Which communicators of NCCL a plan needs; pure, no call of the library.
#include <algorithm>
#include <set>

#include "cuda/nccl_communicator.h"

namespace gptbench {

NcclLinks links_of(const Plan& plan, Axis axis) {
  NcclLinks links;
  const int64_t place = plan.grid.place_of(plan.rank, axis);
  std::set<NcclLinks::Edge> edges;
  for (const Op& op : plan.ops) {
    if (!is_message(op.kind) || op.axis != axis) continue;
    const MessageSize& size = op.as<MessageSize>();
    if (op.kind == OpKind::send)
      edges.insert({place, size.peer, size.tag & 1});
    else if (op.kind == OpKind::receive)
      edges.insert({size.peer, place, size.tag & 1});
    else
      links.collective = true;
  }
  links.edges.assign(edges.begin(), edges.end());
  return links;
}

std::string name_of_group(const std::vector<int64_t>& members) {
  return "group " + std::to_string(*std::min_element(members.begin(), members.end()));
}

std::string name_of_edge(int64_t from, int64_t to, int way) {
  return "edge " + std::to_string(from) + " " + std::to_string(to) + " " + std::to_string(way);
}

std::vector<std::string> ids_made_here(const Plan& plan, Axis axis) {
  std::vector<std::string> names;
  const std::vector<int64_t> group = plan.grid.group_of(plan.rank, axis);
  const auto mine = std::find(group.begin(), group.end(), plan.rank);
  if (mine == group.end()) return names;
  const NcclLinks links = links_of(plan, axis);
  if (links.collective && mine == group.begin()) names.push_back(name_of_group(group));
  for (const NcclLinks::Edge& edge : links.edges) {
    const int64_t from = group[static_cast<size_t>(edge.from)];
    if (from == plan.rank)
      names.push_back(name_of_edge(from, group[static_cast<size_t>(edge.to)], edge.way));
  }
  return names;
}

}  // namespace gptbench
