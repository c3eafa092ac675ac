// Which ranks exchange the messages of a calibration, and in which groups.
#include "calibrate/measure_messages.h"

#include <gtest/gtest.h>

#include "comm/mpi_world.h"
#include "deck/deck.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

Grid grid_of(int64_t tensor, int64_t data) {
  Grid grid;
  grid.tensor = tensor;
  grid.data = data;
  return grid;
}

AxisMessages all_reduces(const Grid& grid, Axis axis) {
  return {{}, grid, axis, {OpKind::all_reduce}};
}

// "data 4, tensor 2": axes and sizes of their groups.
std::string names(const std::vector<AxisMessages>& axes) {
  std::string text;
  for (const AxisMessages& each : axes)
    text += (text.empty() ? "" : ", ") + std::string(name_of(each.axis)) + " " +
            std::to_string(each.grid.size_of(each.axis));
  return text;
}

// "2 x 3": nodes, and ranks of each.
std::string ranks_of(const std::vector<int64_t>& node_sizes) {
  const MessageRanks ranks = message_ranks(node_sizes, 0, 0);
  return std::to_string(ranks.nodes) + " x " + std::to_string(ranks.per_node);
}

TEST(MessageRanks, AsManyOfEachNodeAsTwoNodesHold) {
  EXPECT_EQ(ranks_of({1}), "1 x 1");
  EXPECT_EQ(ranks_of({3}), "1 x 3");
  EXPECT_EQ(ranks_of({4, 4, 4}), "3 x 4");
  EXPECT_EQ(ranks_of({4, 4, 1}), "2 x 4");
  EXPECT_EQ(ranks_of({4, 3}), "2 x 3");
  EXPECT_EQ(ranks_of({4, 1}), "2 x 1");
  EXPECT_EQ(ranks_of({3, 2, 1}), "2 x 2");
  EXPECT_EQ(ranks_of({1, 4, 5}), "2 x 4");
}

TEST(MessageRanks, CountNodeByNode) {
  const std::vector<int64_t> node_sizes = {2, 4, 1, 3};  // 2 x 3 ranks
  const auto rank_of = [&](int64_t node, int64_t node_rank) {
    return message_ranks(node_sizes, node, node_rank).rank;
  };
  EXPECT_EQ(rank_of(0, 0), -1);
  EXPECT_EQ(rank_of(1, 0), 0);
  EXPECT_EQ(rank_of(1, 2), 2);
  EXPECT_EQ(rank_of(1, 3), -1);
  EXPECT_EQ(rank_of(2, 0), -1);
  EXPECT_EQ(rank_of(3, 0), 3);
  EXPECT_EQ(rank_of(3, 2), 5);
}

TEST(MessageRanks, OfTheFullestNode) {
  const std::vector<int64_t> node_sizes = {1, 4, 2, 4};
  for (int64_t node = 0; node < 4; ++node)
    for (int64_t rank = 0; rank < node_sizes[static_cast<size_t>(node)]; ++rank) {
      const MessageRanks ranks = ranks_of_fullest_node(node_sizes, node, rank);
      EXPECT_EQ(ranks.nodes, 1);
      EXPECT_EQ(ranks.per_node, 4);
      EXPECT_EQ(ranks.rank, node == 1 ? rank : -1) << node;
      EXPECT_EQ(names({messages_within_node(ranks)}), "tensor 4");
    }
}

// Groups with several ranks on each of several nodes are of neither link.
TEST(MeasureMessages, GroupsOfBothLinksAreAddedToThoseOfADeck) {
  const std::vector<AxisMessages> data = {all_reduces(grid_of(1, 4), Axis::data)};
  const std::vector<AxisMessages> all = with_groups_of_links(data, {2, 2});
  EXPECT_EQ(names(all), "data 4, tensor 2, data 2");
  EXPECT_EQ(all[1].kinds.size(), 4u);
  // On one node, and on nodes of one rank, the deck's group is that of the link.
  EXPECT_EQ(names(with_groups_of_links(data, {1, 4})), "data 4");
  EXPECT_EQ(names(with_groups_of_links(data, {4, 1})), "data 4");
}

TEST(MeasureMessages, GroupsThatADeckHasAreNotAdded) {
  const AxisMessages within = all_reduces(grid_of(2, 2), Axis::tensor),
                     between = all_reduces(grid_of(2, 2), Axis::data);
  EXPECT_EQ(names(with_groups_of_links({within, between}, {2, 2})), "tensor 2, data 2");
  EXPECT_EQ(names(with_groups_of_links({within}, {2, 2})), "tensor 2, data 2");
  EXPECT_EQ(names(with_groups_of_links({between}, {2, 2})), "data 2, tensor 2");
  // A deck may send no messages.
  EXPECT_EQ(names(with_groups_of_links({}, {2, 2})), "tensor 2, data 2");
}

Plan plan_of(MpiWorld& world) {
  Config config = resolve(parse_deck("deck", "&run device = 'host' /", {}), world.size());
  config.run.comm = CommLibrary::mpi;
  return make_plan(config, world.size(), world.rank());
}

// Four replicas on two nodes of two ranks.
TEST(MeasureMessages, OfAPlanOnSeveralNodes) {
  MpiWorld world(nullptr, nullptr);
  ASSERT_EQ(world.size(), 4);
  const std::string found = names(messages_of(world, plan_of(world), {2, 2}));
  const std::string added = ", tensor 2, data 2";
  ASSERT_GT(found.size(), added.size());
  EXPECT_EQ(found.substr(found.size() - added.size()), added) << found;
  // Its groups are of four ranks; two of them wait.
  EXPECT_EQ(names(messages_of(world, plan_of(world), {2, 1})), "data 2");
}

// Three of four ranks, as one node and as three; the first, which has the result, waits.
TEST(MeasureMessages, OfSomeRanks) {
  MpiWorld world(nullptr, nullptr);
  ASSERT_EQ(world.size(), 4);
  const std::unique_ptr<Device> device = make_host_device(DeviceKind::host);
  for (const int64_t nodes : {1, 3}) {
    const MessageRanks ranks{nodes, 3 / nodes, world.rank() - 1};
    const std::vector<AxisMessages> axes = default_messages(ranks);
    ASSERT_EQ(names(axes), "data 3");
    Calibration result;
    const MessageOutcome outcome = measure_messages(world, *device, plan_of(world).config, axes[0],
                                                    /*room_bytes=*/128, /*seconds=*/1e5, result);
    EXPECT_EQ(outcome.wrong, 0);
    EXPECT_EQ(outcome.left_out.items, 0);
    // Each of the four kinds has two sizes in 128 bytes of room: messages of 3 and of 6 elements.
    ASSERT_EQ(result.messages.size(), world.rank() == 0 ? 4 * 2u : 0u);
    for (const MessageRate& rate : result.messages) {
      EXPECT_EQ(rate.ranks, 3);
      EXPECT_EQ(rate.per_node, 3 / nodes);
      EXPECT_EQ(rate.count % 3, 0);
      EXPECT_GT(rate.time_s, 0.0) << rate.op;
      EXPECT_EQ(rate.wrong, 0) << rate.op;
    }
  }
}

}  // namespace
}  // namespace gptbench
