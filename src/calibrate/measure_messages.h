// Times of the messages that the engine sends, through its communicators, axis by axis.
#pragma once

#include <vector>

#include "calibrate/time_share.h"
#include "plan/plan.h"
#include "record/calibration.h"

namespace gptbench {

constexpr int64_t smallest_message_bytes = 8, largest_message_bytes = int64_t{256} << 20;

// The ranks that exchange messages: as many of each of several nodes. As in a projection, what is
// within a node and what is between nodes is told from places in a grid that fills one node after
// the other.
struct MessageRanks {
  int64_t nodes = 1, per_node = 1;
  int64_t rank = 0;  // of this rank among them, node by node; -1: it waits while they exchange

  int64_t size() const { return nodes * per_node; }
};
// per_node is the largest number of ranks that two nodes hold, or the one node there is: nodes with
// fewer wait, and of those with more the ranks behind the first per_node. `node`, `node_rank`: of
// this rank, as MpiWorld has them.
// Examples, ranks of each node: {4, 4, 1} makes 2 nodes of 4, {4, 3} 2 of 3, {4, 1} 2 of 1.
MessageRanks message_ranks(const std::vector<int64_t>& node_sizes, int64_t node, int64_t node_rank);
// The ranks of the node that holds most, of the first such node; the others wait.
MessageRanks ranks_of_fullest_node(const std::vector<int64_t>& node_sizes, int64_t node,
                                   int64_t node_rank);

// The groups of `axis` of a grid of `ranks`, and what is measured in them: kinds of collectives,
// and `send` for messages between two neighbours, of which the even one sends and gets the message
// back.
struct AxisMessages {
  MessageRanks ranks;
  Grid grid;
  Axis axis = Axis::world;
  std::vector<OpKind> kinds;
};

// Messages to measure without a deck. On one node all ranks as one group; on several nodes groups
// within nodes (tensor), groups of one rank of each node (data), and all ranks (world).
std::vector<AxisMessages> default_messages(const MessageRanks& ranks);
// Messages of all kinds among `ranks` of one node, as one group along the tensor axis.
AxisMessages messages_within_node(const MessageRanks& ranks);
// `axes` of a deck, and on several nodes those of default_messages() within nodes and of one rank
// of each node where the deck has no such groups: the links of a profile are fitted to these alone.
// Example, four ranks on two nodes with data = 4: no group of the deck is either, so tensor {0, 1}
// and data {0, 2} of the default are added.
std::vector<AxisMessages> with_groups_of_links(std::vector<AxisMessages> axes,
                                               const MessageRanks& ranks);
// Collective. The axes and collectives that the plan of any rank uses, with_groups_of_links(). The
// groups of a plan need all ranks: where some wait, default_messages().
std::vector<AxisMessages> messages_of(MpiWorld& world, const Plan& plan, const MessageRanks& ranks);

struct MessageOutcome {
  LeftOut left_out;
  int64_t wrong = 0;  // elements that were not what they must be, over all ranks
};

// Collective. Messages of 8 bytes to 256 MiB (of room_bytes, where that is less), in powers of two.
// Each is checked once, element by element: of ones, an all-reduce or reduce-scatter makes the
// number of ranks, the others leave ones. Appends to `result` on rank 0. `config`: with the library
// of messages that make_device() selected.
MessageOutcome measure_messages(MpiWorld& world, Device& device, const Config& config,
                                const AxisMessages& messages, int64_t room_bytes, double seconds,
                                Calibration& result);

// Elements of a device's array [count] that are not `expected`.
int64_t count_wrong(Device& device, Queue& queue, const float* array, int64_t count,
                    float expected);

// Collective, of two and more ranks. GEMMs of `type` on all ranks, an all-reduce of those that
// exchange messages, and both at the same time, as the engine issues them: the message first,
// driven between GEMMs. Appends to `result` on rank 0; returns which of the three were left out.
LeftOut measure_overlap(MpiWorld& world, Device& device, const Config& config,
                        const MessageRanks& ranks, ComputeType type, int64_t room_bytes,
                        double seconds, Calibration& result);

}  // namespace gptbench
