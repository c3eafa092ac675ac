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

// How nodes are connected. Where all of them send to the one d nodes further at the same time, each
// reaches Tier::bytes_per_s / load:
//   torus of k dimensions  load = e x h. The edge of the torus is nodes^(1/k), rounded up; h is the
//                          largest of min(digit, edge - digit) over the k digits of d to this base:
//                          so many messages pass a link, and each takes the share e of it that
//                          software reaches
//   groups of g nodes      load = min(1, d / g) x bytes_per_s / what leads out of a group per node
// but at least 1. Zeros: all nodes reach each other at full bandwidth.
struct Topology {
  int64_t torus_dimensions = 0, torus_edge = 1;
  double share_of_link = 1.0;  // e
  int64_t group_nodes = 0;
  double beyond_bytes_per_s = 0.0;
};

struct Algorithms {
  bool ring = true, tree = true, halving_doubling = true;
};

struct Links {
  Tier within, between;
  int64_t ranks_per_node = 1;
  Topology topology;
  Algorithms algorithms;

  // Load (Topology) of messages to the node that is `nodes` further.
  double load(int64_t nodes) const;
};
// Latency and bandwidth that messages of the software reach in a job of so many ranks, without
// Software::message_us.
Links links_of(const Machine& machine, const Software& software, int64_t ranks);

// How the ranks of a group lie on nodes. Example, 8 ranks per node, tensor = 2, data = 8: a tensor
// group is {2 ranks, 2 per node, 1 sharing}, a data group {8 ranks, 4 per node, 2 sharing}: the two
// data groups of a node send through its links at the same time.
struct GroupShape {
  int64_t ranks = 1, per_node = 1, sharing = 1;
  int64_t stride = 1;  // from a node of the group to its next one, in nodes
  int64_t nodes() const { return (ranks + per_node - 1) / per_node; }
};
// Shape of the groups along `axis` that ranks of the stage of `rank` are in; ranks fill nodes in
// their order. Where groups lie differently, as three of 6 ranks on nodes of 8 do, it is that of
// one on the most nodes, spread evenly: the others wait for it.
GroupShape shape_of(const Grid& grid, int64_t rank, Axis axis, int64_t ranks_per_node);

// Shares of the time of a group's collectives for which they keep a rank's link within its node and
// the node's link to others busy: 1 for the slower of those that they pass, 0 for one that they do
// not. Example: within 300 GB/s per rank, between 100 GB/s per node, 4 ranks on each of 2 nodes,
// sharing 2: {50 / 300, 1}.
struct LinkUse {
  double within = 0.0, between = 0.0;
};
LinkUse use_of(const Links& links, const GroupShape& group);

// Nodes from a rank of the stage of `rank` to its peer in pipeline stage `stage`, the largest of
// them; 0: all have it on their node.
int64_t nodes_to_stage(const Grid& grid, int64_t rank, int64_t stage, int64_t ranks_per_node);

// Seconds of one collective about an array of S `bytes` (of all ranks where it is gathered or
// scattered) in a group of n ranks, q of them on each of N nodes, s nodes apart: the least over
// Links::algorithms of
//   ring                (n - 1) steps: S (n - 1) / n over the slower of the tiers, load(s)
//   tree                all-reduce only: 2 S over the slower tier, log2(N) steps between nodes and
//                       q - 1 within them each way, in pieces that follow each other; one of 2^i
//                       nodes sends 2^(i-1) s nodes far, so that their loads add up
//   halving-doubling    log2(n) steps: S (q - 1) / q within nodes, then S (N - 1) / N between them,
//                       of a node's ranks together: S / 2 to load(s), S / 4 to load(2 s), ...
// An all-reduce by ring or halving-doubling is a reduce-scatter and an all-gather.
double collective_s(const Links& links, OpKind kind, double bytes, const GroupShape& group);

// Seconds of one message to a rank so many nodes further (0: on the same node), where `sharing`
// ranks of each node send at the same time.
double message_s(const Links& links, double bytes, int64_t nodes, int64_t sharing);

}  // namespace gptbench
