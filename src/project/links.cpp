#include "project/links.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/units.h"

namespace gptbench {
namespace {

double steps_of_log2(int64_t n) {
  return std::ceil(std::log2(static_cast<double>(n)));
}

// (n - 1) / n: the part of an array that a rank does not hold yet.
double others(int64_t n) {
  return static_cast<double>(n - 1) / static_cast<double>(n);
}

// The ranks of the stage of `rank`, but only itself where the groups of all lie on nodes alike:
// where nodes begin at multiples of what is within an axis, and axes at multiples of nodes.
std::vector<int64_t> unlike_ranks(const Grid& grid, int64_t rank, Axis axis,
                                  int64_t ranks_per_node) {
  bool alike = grid.zero_group == 0 || (axis != Axis::shard && axis != Axis::replica);
  int64_t within = 1;
  for (const Axis each : grid.order) {
    within *= grid.size_of(each);
    alike = alike && (within % ranks_per_node == 0 || ranks_per_node % within == 0);
  }
  if (alike) return {rank};
  const int64_t stage = grid.coordinates_of(rank).pipeline;
  std::vector<int64_t> ranks;
  for (int64_t each = 0; each < grid.size(); ++each)
    if (grid.coordinates_of(each).pipeline == stage) ranks.push_back(each);
  return ranks;
}

}  // namespace

Links links_of(const Machine& machine, const Software& software) {
  Links links;
  links.within = {machine.within_us * 1e-6,
                  machine.within_gb_per_s * 1e9 * software.within_efficiency};
  links.between = {machine.between_us * 1e-6,
                   machine.between_gb_per_s * 1e9 * software.between_efficiency};
  links.ranks_per_node = static_cast<int64_t>(machine.ranks_per_node);
  return links;
}

GroupShape shape_of(const Grid& grid, int64_t rank, Axis axis, int64_t ranks_per_node) {
  GroupShape shape;
  shape.ranks = grid.size_of(axis);
  int64_t most_nodes = 1;
  std::vector<bool> seen(static_cast<size_t>(grid.size()));
  std::vector<int64_t> nodes;
  for (const int64_t each : unlike_ranks(grid, rank, axis, ranks_per_node)) {
    if (seen[static_cast<size_t>(each)]) continue;
    nodes.clear();
    for (int64_t place = 0; place < shape.ranks; ++place) {
      const int64_t member = grid.member_of(each, axis, place);
      seen[static_cast<size_t>(member)] = true;
      nodes.push_back(member / ranks_per_node);
    }
    std::sort(nodes.begin(), nodes.end());
    most_nodes =
        std::max<int64_t>(most_nodes, std::unique(nodes.begin(), nodes.end()) - nodes.begin());
  }
  shape.per_node = ceil_div(shape.ranks, most_nodes);
  shape.sharing = std::max<int64_t>(1, std::min(ranks_per_node, grid.size()) / shape.per_node);
  return shape;
}

bool leaves_node(const Grid& grid, int64_t rank, Axis axis, int64_t place, int64_t ranks_per_node) {
  const std::vector<int64_t> ranks = unlike_ranks(grid, rank, axis, ranks_per_node);
  return std::any_of(ranks.begin(), ranks.end(), [&](int64_t each) {
    return grid.member_of(each, axis, place) / ranks_per_node != each / ranks_per_node;
  });
}

double collective_s(const Links& links, OpKind kind, double bytes, const GroupShape& group) {
  if (group.ranks <= 1) return 0.0;
  const int64_t n = group.ranks, q = group.per_node, N = group.nodes();
  const double between = links.between.bytes_per_s / static_cast<double>(group.sharing);
  const double slower = N == 1   ? links.within.bytes_per_s
                        : q == 1 ? between
                                 : std::min(links.within.bytes_per_s, between);
  const double within_s = links.within.latency_s, between_s = links.between.latency_s;
  const double ways = kind == OpKind::all_reduce ? 2.0 : 1.0;

  // n - 1 steps, of which N leave their node where there are several.
  const double steps_between = N > 1 ? static_cast<double>(std::min(N, n - 1)) : 0.0;
  const double ring = ways * ((static_cast<double>(n - 1) - steps_between) * within_s +
                              steps_between * between_s + others(n) * bytes / slower);
  const double halving =
      ways * (steps_of_log2(q) * within_s + steps_of_log2(N) * between_s +
              others(q) * bytes / links.within.bytes_per_s + others(N) * bytes / between);
  const double least = std::min(ring, halving);
  if (kind != OpKind::all_reduce) return least;
  const double tree =
      2.0 * (steps_of_log2(N) * between_s + static_cast<double>(q - 1) * within_s + bytes / slower);
  return std::min(least, tree);
}

double message_s(const Links& links, double bytes, bool same_node, int64_t sharing) {
  if (same_node) return links.within.latency_s + bytes / links.within.bytes_per_s;
  return links.between.latency_s + bytes * static_cast<double>(sharing) / links.between.bytes_per_s;
}

}  // namespace gptbench
