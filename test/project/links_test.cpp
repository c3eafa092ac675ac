// The link model against its formulas, worked out by hand.
#include "project/links.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gptbench {
namespace {

// Latencies of 1 and 10 s, 100 and 50 byte/s.
const Links links = {{1.0, 100.0}, {10.0, 50.0}, 8};

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
  EXPECT_FALSE(leaves_node(grid, 0, Axis::data, 1, 24));
  EXPECT_TRUE(leaves_node(grid, 0, Axis::data, 1, 8));
  // Of two stages with 3 ranks each on nodes of 4, stage 1 begins on the first node.
  Grid stages;
  stages.tensor = 3;
  stages.pipeline = 2;
  EXPECT_EQ(shape_of(stages, 0, Axis::tensor, 4).nodes(), 1);
  EXPECT_EQ(shape_of(stages, 3, Axis::tensor, 4).nodes(), 2);
  EXPECT_TRUE(leaves_node(stages, 0, Axis::pipeline, 1, 4));  // 1 and 4, not 0 and 3
  EXPECT_FALSE(leaves_node(stages, 0, Axis::pipeline, 1, 8));
}

// ZeRO partitions over 4 of 8 ranks: {0..3} on one node of 6, {4..7} on two.
TEST(Links, PartitionsOfPartOfTheReplicas) {
  Grid grid;
  grid.data = 8;
  grid.zero_group = 4;
  EXPECT_EQ(shape_of(grid, 0, Axis::shard, 6).nodes(), 2);
  EXPECT_EQ(shape_of(grid, 0, Axis::shard, 4).nodes(), 1);
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
  const Links even = {{1.0, 100.0}, {1.0, 100.0}, 2};
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
  EXPECT_DOUBLE_EQ(message_s(links, 200.0, true, 1), 1.0 + 2.0);
  EXPECT_DOUBLE_EQ(message_s(links, 200.0, false, 1), 10.0 + 4.0);
  EXPECT_DOUBLE_EQ(message_s(links, 200.0, false, 3), 10.0 + 12.0);
}

}  // namespace
}  // namespace gptbench
