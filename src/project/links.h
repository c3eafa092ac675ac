// How long messages take: a model of two tiers, links within a node and between nodes.
#pragma once

#include <cstdint>

#include "plan/grid.h"
#include "plan/op_spec.h"
#include "project/profile.h"

namespace gptbench {

// Latency of a message, and bandwidth in one direction: of one rank within a node, of a whole node
// between nodes.
struct Tier {
  double latency_s = 0.0, bytes_per_s = 1.0;
};

struct Links {
  Tier within, between;
  int64_t ranks_per_node = 1;
};
// As messages of the software reach them, without Software::message_us.
Links links_of(const Machine& machine, const Software& software);

// How the ranks of a group lie on nodes. Example, 8 ranks per node, tensor = 2, data = 8: a tensor
// group is {2 ranks, 2 per node, 1 sharing}, a data group {8 ranks, 4 per node, 2 sharing}: the two
// data groups of a node send through its links at the same time.
struct GroupShape {
  int64_t ranks = 1, per_node = 1, sharing = 1;
  int64_t nodes() const { return (ranks + per_node - 1) / per_node; }
};
// Shape of the groups along `axis` that ranks of the stage of `rank` are in; ranks fill nodes in
// their order. Where groups lie differently, as three of 6 ranks on nodes of 8 do, it is that of
// one on the most nodes, spread evenly: the others wait for it.
GroupShape shape_of(const Grid& grid, int64_t rank, Axis axis, int64_t ranks_per_node);
// Whether any rank of the stage of `rank` is on another node than the member of its group at
// `place`.
bool leaves_node(const Grid& grid, int64_t rank, Axis axis, int64_t place, int64_t ranks_per_node);

// Seconds of one collective about an array of S `bytes` (of all ranks where it is gathered or
// scattered) in a group of n ranks, q of them on each of N nodes: the least over
//   ring                (n - 1) steps: S (n - 1) / n over the slower of the tiers
//   tree                all-reduce only: 2 S over the slower tier, log2(N) steps between nodes and
//                       q - 1 within them each way, in pieces that follow each other
//   halving-doubling    log2(n) steps: S (q - 1) / q within nodes, then S (N - 1) / N between them,
//                       of a node's ranks together
// An all-reduce by ring or halving-doubling is a reduce-scatter and an all-gather.
double collective_s(const Links& links, OpKind kind, double bytes, const GroupShape& group);

// Seconds of one message to a rank on the same node or on another, where `sharing` ranks of the
// node send at the same time.
double message_s(const Links& links, double bytes, bool same_node, int64_t sharing);

}  // namespace gptbench
