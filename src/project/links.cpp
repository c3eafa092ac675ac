#include "project/links.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
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
  std::vector<int64_t> ranks = {0};
  int64_t stride = 1;
  for (const Axis each : grid.order) {
    const bool is_stage = each == Axis::pipeline;
    const int64_t size = grid.size_of(each);
    std::vector<int64_t> longer;
    for (int64_t place = is_stage ? stage : 0; place < (is_stage ? stage + 1 : size); ++place)
      for (const int64_t before : ranks) longer.push_back(before + place * stride);
    ranks = std::move(longer);
    stride *= size;
  }
  return ranks;
}

// What `nodes` are apart on a ring of `edge` nodes in each dimension of a torus, the largest.
int64_t largest_hop(int64_t nodes, int64_t dimensions, int64_t edge) {
  int64_t largest = 0;
  for (int64_t d = 0; d < dimensions && nodes > 0; ++d, nodes /= edge) {
    const int64_t digit = nodes % edge;
    largest = std::max(largest, std::min(digit, edge - digit));
  }
  return largest;
}

// The smallest edge of a torus that holds so many nodes.
int64_t torus_edge(int64_t nodes, int64_t dimensions) {
  const auto holds_all = [&](int64_t edge) {
    return std::pow(static_cast<double>(edge), static_cast<double>(dimensions)) >=
           static_cast<double>(nodes);
  };
  if (dimensions == 0) return 1;
  auto edge = static_cast<int64_t>(
      std::pow(static_cast<double>(nodes), 1.0 / static_cast<double>(dimensions)));
  while (!holds_all(edge)) ++edge;
  return edge;
}

// Bytes that a node sends in halving-doubling among N nodes, each message times its load, over the
// bytes of the array.
double halving_load(const Links& links, int64_t N, int64_t stride) {
  double sent = others(N);
  double left = 1.0;
  for (int64_t distance = 1; distance < N; distance *= 2) {
    const double next = std::max(0.5 * left, 1.0 / static_cast<double>(N));
    sent += (left - next) * (links.load(distance * stride) - 1.0);
    left = next;
  }
  return sent;
}

double tree_load(const Links& links, int64_t N, int64_t stride) {
  double load = 0.0, senders = 0.5;
  for (int64_t distance = 1; distance < N; distance *= 2, senders *= 0.5)
    load += senders * links.load(distance * stride);
  return std::max(links.load(stride), load);
}

}  // namespace

double Links::load(int64_t nodes) const {
  const Topology& t = topology;
  double load = 1.0;
  if (t.torus_dimensions > 0)
    load =
        t.share_of_link * static_cast<double>(largest_hop(nodes, t.torus_dimensions, t.torus_edge));
  else if (t.group_nodes > 0)
    load = std::min(1.0, static_cast<double>(nodes) / static_cast<double>(t.group_nodes)) *
           between.bytes_per_s / t.beyond_bytes_per_s;
  return std::max(1.0, load);
}

Links links_of(const Machine& machine, const Software& software, int64_t ranks) {
  Links links;
  links.within = {machine.within_us * 1e-6,
                  machine.within_gb_per_s * 1e9 * software.within_efficiency};
  links.between = {machine.between_us * 1e-6,
                   machine.between_gb_per_s * 1e9 * software.between_efficiency};
  links.ranks_per_node = static_cast<int64_t>(machine.ranks_per_node);
  Topology& topology = links.topology;
  topology.torus_dimensions = static_cast<int64_t>(machine.torus_dimensions);
  topology.torus_edge =
      torus_edge(ceil_div(ranks, links.ranks_per_node), topology.torus_dimensions);
  topology.group_nodes = static_cast<int64_t>(machine.group_nodes);
  topology.share_of_link = software.between_efficiency;
  topology.beyond_bytes_per_s = machine.beyond_gb_per_s * 1e9;
  links.algorithms = {machine.may_use("ring"), machine.may_use("tree"),
                      machine.may_use("halving-doubling")};
  return links;
}

GroupShape shape_of(const Grid& grid, int64_t rank, Axis axis, int64_t ranks_per_node) {
  GroupShape shape;
  shape.ranks = grid.size_of(axis);
  int64_t most_nodes = 0;
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
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    const auto count = static_cast<int64_t>(nodes.size());
    if (count <= most_nodes) continue;
    most_nodes = count;
    if (count > 1) shape.stride = (nodes.back() - nodes.front()) / (count - 1);
  }
  shape.per_node = ceil_div(shape.ranks, most_nodes);
  shape.sharing = std::max<int64_t>(1, std::min(ranks_per_node, grid.size()) / shape.per_node);
  return shape;
}

LinkUse use_of(const Links& links, const GroupShape& group) {
  if (group.nodes() == 1) return {1.0, 0.0};
  if (group.per_node == 1) return {0.0, 1.0};
  const double within = links.within.bytes_per_s,
               between = links.between.bytes_per_s / static_cast<double>(group.sharing),
               slower = std::min(within, between);
  return {slower / within, slower / between};
}

int64_t nodes_to_stage(const Grid& grid, int64_t rank, int64_t stage, int64_t ranks_per_node) {
  int64_t most = 0;
  for (const int64_t each : unlike_ranks(grid, rank, Axis::pipeline, ranks_per_node)) {
    const int64_t peer = grid.member_of(each, Axis::pipeline, stage);
    most = std::max(most, std::abs(peer / ranks_per_node - each / ranks_per_node));
  }
  return most;
}

double collective_s(const Links& links, OpKind kind, double bytes, const GroupShape& group) {
  if (group.ranks <= 1) return 0.0;
  const int64_t n = group.ranks, q = group.per_node, N = group.nodes();
  const double between = links.between.bytes_per_s / static_cast<double>(group.sharing);
  // Bandwidth of the slower tier, where messages between nodes have this load.
  const auto slower = [&](double load) {
    return N == 1   ? links.within.bytes_per_s
           : q == 1 ? between / load
                    : std::min(links.within.bytes_per_s, between / load);
  };
  const double within_s = links.within.latency_s, between_s = links.between.latency_s;
  const double ways = kind == OpKind::all_reduce ? 2.0 : 1.0;

  // n - 1 steps, of which N leave their node where there are several.
  const double steps_between = N > 1 ? static_cast<double>(std::min(N, n - 1)) : 0.0;
  const double ring =
      ways * ((static_cast<double>(n - 1) - steps_between) * within_s + steps_between * between_s +
              others(n) * bytes / slower(links.load(group.stride)));
  const double halving = ways * (steps_of_log2(q) * within_s + steps_of_log2(N) * between_s +
                                 others(q) * bytes / links.within.bytes_per_s +
                                 halving_load(links, N, group.stride) * bytes / between);
  const double tree = 2.0 * (steps_of_log2(N) * between_s + static_cast<double>(q - 1) * within_s +
                             bytes / slower(tree_load(links, N, group.stride)));
  constexpr double never = std::numeric_limits<double>::infinity();
  const Algorithms& may = links.algorithms;
  return std::min({may.ring ? ring : never, may.halving_doubling ? halving : never,
                   may.tree && kind == OpKind::all_reduce ? tree : never});
}

double message_s(const Links& links, double bytes, int64_t nodes, int64_t sharing) {
  if (nodes == 0) return links.within.latency_s + bytes / links.within.bytes_per_s;
  return links.between.latency_s +
         bytes * static_cast<double>(sharing) * links.load(nodes) / links.between.bytes_per_s;
}

}  // namespace gptbench
