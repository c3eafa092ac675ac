// The link model against its formulas, worked out by hand.
#include "project/links.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gptbench {
namespace {

// Latencies of 1 and 10 s, 100 and 50 byte/s.
const Links links = {{1.0, 100.0}, {10.0, 50.0}, 8, {}, {}};

TEST(Links, GroupsLieOnNodes) {
  Grid grid;
  grid.tensor = 2;
  grid.data = 8;
  const GroupShape tensor = shape_of(grid, 5, Axis::tensor, 8);
  EXPECT_EQ(tensor.ranks, 2);
  EXPECT_EQ(tensor.per_node, 2);
  EXPECT_EQ(tensor.nodes(), 1);
  const GroupShape data = shape_of(grid, 5, Axis::data, 8);
  EXPECT_EQ(data.ranks, 8);
  EXPECT_EQ(data.per_node, 4);
  EXPECT_EQ(data.nodes(), 2);
  EXPECT_EQ(data.sharing, 2);
  EXPECT_EQ(data.stride, 1);
  EXPECT_EQ(shape_of(grid, 5, Axis::data, 1).stride, 2);
  EXPECT_EQ(shape_of(grid, 5, Axis::data, 1).nodes(), 8);
}

// 24 ranks on 3 nodes of 8, four tensor groups of 6: ranks 0 to 5 share a node, 6 to 11 do not.
// The groups along data, {0, 6, 12, 18} and so on, lie on 2 or 3 nodes.
TEST(Links, TheGroupOnMostNodesCounts) {
  Grid grid;
  grid.tensor = 6;
  grid.data = 4;
  const GroupShape tensor = shape_of(grid, 0, Axis::tensor, 8);
  EXPECT_EQ(tensor.nodes(), 2);
  EXPECT_EQ(tensor.per_node, 3);
  EXPECT_EQ(tensor.sharing, 2);
  // Of two stages with 3 ranks each on nodes of 4, stage 1 begins on the first node.
  Grid stages;
  stages.tensor = 3;
  stages.pipeline = 2;
  EXPECT_EQ(shape_of(stages, 0, Axis::tensor, 4).nodes(), 1);
  EXPECT_EQ(shape_of(stages, 3, Axis::tensor, 4).nodes(), 2);
  EXPECT_EQ(nodes_to_stage(stages, 0, 1, 4), 1);  // 1 and 4, not 0 and 3
  EXPECT_EQ(nodes_to_stage(stages, 0, 1, 8), 0);
  EXPECT_EQ(nodes_to_stage(stages, 3, 0, 1), 3);
}

// ZeRO partitions over 4 of 8 ranks: {0..3} on one node of 6, {4..7} on two.
TEST(Links, PartitionsOfPartOfTheReplicas) {
  Grid grid;
  grid.data = 8;
  grid.zero_group = 4;
  EXPECT_EQ(shape_of(grid, 0, Axis::shard, 6).nodes(), 2);
  EXPECT_EQ(shape_of(grid, 0, Axis::shard, 4).nodes(), 1);
}

// Two data groups of a node share its 50 byte/s, a quarter of what each rank has within it.
TEST(Links, TheFasterLinkIsFreeAgainEarlier) {
  const auto use = [](const Links& of, const GroupShape& group) {
    const LinkUse found = use_of(of, group);
    return std::vector<double>{found.within, found.between};
  };
  EXPECT_EQ(use(links, {8, 4, 2}), (std::vector<double>{0.25, 1.0}));
  EXPECT_EQ(use(links, {8, 8, 1}), (std::vector<double>{1.0, 0.0}));
  EXPECT_EQ(use(links, {8, 1, 8}), (std::vector<double>{0.0, 1.0}));
  const Links fast = {{1.0, 100.0}, {10.0, 400.0}, 8, {}, {}};
  EXPECT_EQ(use(fast, {8, 4, 2}), (std::vector<double>{1.0, 0.5}));
}

TEST(Links, NothingToSendToNobody) {
  EXPECT_EQ(collective_s(links, OpKind::all_reduce, 800.0, {1, 1, 1}), 0.0);
}

// 8 ranks of one node. Halving-doubling: 3 steps of 1 s, 7/8 of 800 byte over 100 byte/s. A ring
// has 7 steps; a tree 2 x (7 + 8) s.
TEST(Links, OneNode) {
  EXPECT_DOUBLE_EQ(collective_s(links, OpKind::all_gather, 800.0, {8, 8, 1}), 3.0 + 7.0);
  EXPECT_DOUBLE_EQ(collective_s(links, OpKind::reduce_scatter, 800.0, {8, 8, 1}), 3.0 + 7.0);
  EXPECT_DOUBLE_EQ(collective_s(links, OpKind::all_reduce, 800.0, {8, 8, 1}), 2.0 * (3.0 + 7.0));
}

// 2 nodes of 2 ranks. Halving-doubling: 1 + 10 s, half of 400 byte over 100 byte/s and half over
// 50. A ring: 2 steps between nodes and 1 within, 3/4 of 400 byte over 50 byte/s: 27 s.
TEST(Links, TwoNodes) {
  EXPECT_DOUBLE_EQ(collective_s(links, OpKind::reduce_scatter, 400.0, {4, 2, 1}), 17.0);
  // Large arrays over equal links: the tiers of a ring work at the same time, 3 steps of 1 s and
  // 3/4 of 4e6 byte over 100 byte/s. Halving-doubling takes 1/2 + 1/2 of them, one after the other.
  const Links even = {{1.0, 100.0}, {1.0, 100.0}, 2, {}, {}};
  EXPECT_DOUBLE_EQ(collective_s(even, OpKind::all_gather, 4e6, {4, 2, 1}), 3.0 + 0.75 * 4e4);
  // Groups that share a node's links have a part of them each.
  EXPECT_DOUBLE_EQ(collective_s(links, OpKind::reduce_scatter, 400.0, {2, 1, 2}), 10.0 + 8.0);
}

// Latency of short messages grows with log2(n), not with n.
TEST(Links, ThousandsOfNodes) {
  EXPECT_DOUBLE_EQ(collective_s(links, OpKind::all_reduce, 0.0, {4096, 1, 1}), 2.0 * 12.0 * 10.0);
  EXPECT_DOUBLE_EQ(collective_s(links, OpKind::all_gather, 0.0, {12288, 1, 1}), 14.0 * 10.0);
}

// Long messages over few nodes: a tree sends 2 S, the others 2 (n - 1) / n S.
TEST(Links, AllReduceNeverSlowerThanATree) {
  for (const double bytes : {1.0, 1e3, 1e6})
    for (const int64_t n : {2, 8, 64, 4096})
      EXPECT_LE(collective_s(links, OpKind::all_reduce, bytes, {n, 1, 1}),
                2.0 * (std::ceil(std::log2(static_cast<double>(n))) * 10.0 + bytes / 50.0));
}

TEST(Links, OneMessage) {
  EXPECT_DOUBLE_EQ(message_s(links, 200.0, 0, 1), 1.0 + 2.0);
  EXPECT_DOUBLE_EQ(message_s(links, 200.0, 1, 1), 10.0 + 4.0);
  EXPECT_DOUBLE_EQ(message_s(links, 200.0, 5, 3), 10.0 + 12.0);
}

// 64 nodes of one rank, 10 s and 50 byte/s.
Links connected(const Topology& topology, const Algorithms& algorithms) {
  return {{1.0, 100.0}, {10.0, 50.0}, 1, topology, algorithms};
}
constexpr Algorithms rings = {true, false, false}, trees = {true, true, false},
                     halvings = {false, false, true};

// A torus of 4 x 4 x 4: 18 nodes further are 2, 0 and 1 hops, 3 further is one hop back.
TEST(Topology, HopsOfATorus) {
  const Links torus = connected({3, 4, 1.0, 0, 0.0}, {});
  const auto loads = [&](const std::vector<int64_t>& nodes) {
    std::vector<double> values;
    for (const int64_t each : nodes) values.push_back(torus.load(each));
    return values;
  };
  EXPECT_EQ(loads({0, 1, 2, 3, 4, 8, 16, 18, 21, 32, 48}),
            (std::vector<double>{1, 1, 2, 1, 1, 2, 1, 2, 1, 2, 1}));
  EXPECT_DOUBLE_EQ(message_s(torus, 200.0, 2, 1), 10.0 + 2.0 * 4.0);
  // Software that takes a quarter of a link leaves room for three other messages.
  const Links line = connected({1, 64, 0.25, 0, 0.0}, {});
  EXPECT_EQ(line.load(4), 1.0);
  EXPECT_EQ(line.load(12), 3.0);
}

// Groups of 8 nodes, each node with 10 byte/s to nodes of other groups: one of 8 messages to the
// next node leaves the group, two to the one after it; from 8 nodes on all do, five times as long.
TEST(Topology, GroupsOfNodes) {
  const Links groups = connected({0, 1, 1.0, 8, 10.0}, {});
  EXPECT_EQ(groups.load(1), 1.0);
  EXPECT_EQ(groups.load(2), 2.0 / 8.0 * 5.0);
  EXPECT_EQ(groups.load(8), 5.0);
  EXPECT_EQ(groups.load(32), 5.0);
  EXPECT_DOUBLE_EQ(message_s(groups, 200.0, 8, 1), 10.0 + 5.0 * 4.0);
}

// 64 nodes beside each other. A ring is as fast as without a topology. Halving-doubling: halves,
// quarters, ... of the array go 1, 2, 4, ... nodes far.
TEST(Topology, CollectivesOfNeighbours) {
  const GroupShape all = {64, 1, 1};
  const double S = 6400.0;
  const auto time = [&](const Topology& topology, const Algorithms& algorithms, OpKind kind) {
    return collective_s(connected(topology, algorithms), kind, S, all);
  };
  const Topology none, torus = {3, 4, 1.0, 0, 0.0}, groups = {0, 1, 1.0, 8, 10.0};
  const double ring = 63.0 * 10.0 + S * 63.0 / 64.0 / 50.0;
  for (const Topology& each : {none, torus, groups})
    EXPECT_DOUBLE_EQ(time(each, rings, OpKind::all_gather), ring);
  EXPECT_DOUBLE_EQ(time(none, halvings, OpKind::all_gather), 60.0 + S * 63.0 / 64.0 / 50.0);
  EXPECT_DOUBLE_EQ(time(torus, halvings, OpKind::all_gather),
                   60.0 + S * (32 + 2 * 16 + 8 + 2 * 4 + 2 + 2 * 1) / 64.0 / 50.0);
  EXPECT_DOUBLE_EQ(time(groups, halvings, OpKind::all_gather),
                   60.0 + S * (32 + 1.25 * 16 + 2.5 * 8 + 5 * (4 + 2 + 1)) / 64.0 / 50.0);
  // Half of the nodes send one node far, a quarter two, ...; on groups the links of a leaf suffice.
  EXPECT_DOUBLE_EQ(time(none, trees, OpKind::all_reduce), 2.0 * (60.0 + S / 50.0));
  EXPECT_DOUBLE_EQ(time(torus, trees, OpKind::all_reduce),
                   2.0 * (60.0 + S * (32 + 2 * 16 + 8 + 2 * 4 + 2 + 2 * 1) / 64.0 / 50.0));
}

// Groups along an outer axis, four nodes apart.
TEST(Topology, CollectivesOfDistantNodes) {
  const GroupShape apart = {16, 1, 1, 4};
  EXPECT_DOUBLE_EQ(
      collective_s(connected({1, 64, 1.0, 0, 0.0}, rings), OpKind::all_gather, 1600.0, apart),
      15.0 * 10.0 + 4.0 * 1500.0 / 50.0);
  EXPECT_DOUBLE_EQ(
      collective_s(connected({0, 1, 1.0, 8, 10.0}, rings), OpKind::all_gather, 1600.0, apart),
      15.0 * 10.0 + 2.5 * 1500.0 / 50.0);
}

TEST(Topology, OfTheMachine) {
  Machine machine = read_machine("a100-40");
  const Software software = read_software("fsdp");
  machine.torus_dimensions = 3.0;
  machine.ranks_per_node = 4.0;
  EXPECT_EQ(links_of(machine, software, 4 * 64).topology.torus_edge, 4);
  EXPECT_EQ(links_of(machine, software, 4 * 65).topology.torus_edge, 5);
  EXPECT_EQ(links_of(machine, software, 1).topology.torus_edge, 1);
  EXPECT_TRUE(links_of(machine, software, 1).algorithms.tree);
  machine.collectives = {"ring"};
  EXPECT_TRUE(links_of(machine, software, 1).algorithms.ring);
  EXPECT_FALSE(links_of(machine, software, 1).algorithms.tree);
  EXPECT_FALSE(links_of(machine, software, 1).algorithms.halving_doubling);
}

}  // namespace
}  // namespace gptbench
