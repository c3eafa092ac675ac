// Which groups of ranks a calibration with a deck measures.
#include "calibrate/measure_messages.h"

#include <gtest/gtest.h>

#include <cstdlib>

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
  return {grid, axis, {OpKind::all_reduce}};
}

// "data 4, tensor 2": axes and sizes of their groups.
std::string names(const std::vector<AxisMessages>& axes) {
  std::string text;
  for (const AxisMessages& each : axes)
    text += (text.empty() ? "" : ", ") + std::string(name_of(each.axis)) + " " +
            std::to_string(each.grid.size_of(each.axis));
  return text;
}

// Groups with several ranks on each of several nodes are of neither link.
TEST(MeasureMessages, GroupsOfBothLinksAreAddedToThoseOfADeck) {
  const std::vector<AxisMessages> data = {all_reduces(grid_of(1, 4), Axis::data)};
  const std::vector<AxisMessages> all = with_groups_of_links(data, 4, 2, 2);
  EXPECT_EQ(names(all), "data 4, tensor 2, data 2");
  EXPECT_EQ(all[1].kinds.size(), 4u);
  // On one node, and on nodes of one rank, the deck's group is that of the link.
  EXPECT_EQ(names(with_groups_of_links(data, 4, 1, 4)), "data 4");
  EXPECT_EQ(names(with_groups_of_links(data, 4, 4, 1)), "data 4");
}

TEST(MeasureMessages, GroupsThatADeckHasAreNotAdded) {
  const AxisMessages within = all_reduces(grid_of(2, 2), Axis::tensor),
                     between = all_reduces(grid_of(2, 2), Axis::data);
  EXPECT_EQ(names(with_groups_of_links({within, between}, 4, 2, 2)), "tensor 2, data 2");
  EXPECT_EQ(names(with_groups_of_links({within}, 4, 2, 2)), "tensor 2, data 2");
  EXPECT_EQ(names(with_groups_of_links({between}, 4, 2, 2)), "data 2, tensor 2");
  // A deck may send no messages.
  EXPECT_EQ(names(with_groups_of_links({}, 4, 2, 2)), "tensor 2, data 2");
}

// Four replicas on two nodes of two ranks.
TEST(MeasureMessages, OfAPlanOnSeveralNodes) {
  setenv("GPTBENCH_RANKS_PER_NODE", "2", 1);
  MpiWorld world(nullptr, nullptr);
  unsetenv("GPTBENCH_RANKS_PER_NODE");
  ASSERT_EQ(world.size(), 4);
  ASSERT_EQ(world.num_nodes(), 2);
  Config config = resolve(parse_deck("deck", "&run device = 'host' /", {}), world.size());
  config.run.comm = CommLibrary::mpi;
  const std::string found =
      names(messages_of(world, make_plan(config, world.size(), world.rank())));
  const std::string added = ", tensor 2, data 2";
  ASSERT_GT(found.size(), added.size());
  EXPECT_EQ(found.substr(found.size() - added.size()), added) << found;
}

}  // namespace
}  // namespace gptbench
