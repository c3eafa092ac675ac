#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace gptbench {
namespace {

constexpr Axis all_axes[] = {Axis::tensor, Axis::context, Axis::pipeline,
                             Axis::data,   Axis::zero,    Axis::world};

std::vector<Grid> shapes() {
  std::vector<Grid> grids;
  for (const int64_t tensor : {1, 2, 3})
    for (const int64_t context : {1, 2, 4})
      for (const int64_t pipeline : {1, 3})
        for (const int64_t data : {1, 2, 5})
          for (const RankOrder order : {RankOrder::tp_cp_pp_dp, RankOrder::tp_dp_cp_pp})
            grids.push_back({tensor, context, pipeline, data, 0, axes_of(order)});
  return grids;
}

// The example in grid.h.
TEST(Grid, ExampleOfTheHeader) {
  const Grid grid{2, 1, 2, 2};
  EXPECT_EQ(grid.size(), 8);
  const int64_t tensor[] = {0, 1, 0, 1, 0, 1, 0, 1};
  const int64_t pipeline[] = {0, 0, 1, 1, 0, 0, 1, 1};
  const int64_t data[] = {0, 0, 0, 0, 1, 1, 1, 1};
  for (int64_t rank = 0; rank < 8; ++rank) {
    const Coordinates at = grid.coordinates_of(rank);
    EXPECT_EQ(at.tensor, tensor[rank]) << "rank " << rank;
    EXPECT_EQ(at.context, 0) << "rank " << rank;
    EXPECT_EQ(at.pipeline, pipeline[rank]) << "rank " << rank;
    EXPECT_EQ(at.data, data[rank]) << "rank " << rank;
  }
  EXPECT_EQ(grid.group_of(5, Axis::tensor), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(grid.group_of(5, Axis::pipeline), (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(grid.group_of(5, Axis::data), (std::vector<int64_t>{1, 5}));
  EXPECT_EQ(grid.place_of(-1, Axis::world), -1);
  EXPECT_TRUE(grid.group_of(-1, Axis::data).empty());
  EXPECT_EQ(describe(grid), "tensor 2 x context 1 x pipeline 2 x data 2 = 8 ranks");
}

// Data before pipeline: replicas of a stage are neighbours, its next stage is half the ranks away.
TEST(Grid, RanksFollowTheOrderOfTheAxes) {
  const Grid grid{2, 1, 2, 2, 0, axes_of(RankOrder::tp_dp_pp_cp)};
  const int64_t pipeline[] = {0, 0, 0, 0, 1, 1, 1, 1};
  const int64_t data[] = {0, 0, 1, 1, 0, 0, 1, 1};
  for (int64_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(grid.coordinates_of(rank).tensor, rank % 2) << "rank " << rank;
    EXPECT_EQ(grid.coordinates_of(rank).pipeline, pipeline[rank]) << "rank " << rank;
    EXPECT_EQ(grid.coordinates_of(rank).data, data[rank]) << "rank " << rank;
  }
  EXPECT_EQ(grid.group_of(5, Axis::tensor), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(grid.group_of(5, Axis::pipeline), (std::vector<int64_t>{1, 5}));
  EXPECT_EQ(grid.group_of(5, Axis::data), (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(grid.group_of(5, Axis::model), (std::vector<int64_t>{0, 1, 4, 5}));
  EXPECT_EQ(describe(grid), "tensor 2 x data 2 x pipeline 2 x context 1 = 8 ranks");
}

TEST(Grid, OrdersNameEveryAxisOnce) {
  using Axes = std::array<Axis, 4>;
  EXPECT_EQ(axes_of(RankOrder::tp_cp_pp_dp),
            (Axes{Axis::tensor, Axis::context, Axis::pipeline, Axis::data}));
  EXPECT_EQ(axes_of(RankOrder::tp_cp_pp_dp), Grid().order);
  std::set<Axes> orders;
  for (const std::string& name : names_of(RankOrder{})) {
    const Axes axes = axes_of(choice_of<RankOrder>(name));
    EXPECT_EQ((std::set<Axis>{axes.begin(), axes.end()}).size(), 4u) << name;
    EXPECT_EQ(axes[0], Axis::tensor) << name;
    orders.insert(axes);
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(Grid, CoordinatesAndRanksAreABijection) {
  for (const Grid& grid : shapes()) {
    std::set<std::vector<int64_t>> seen;
    for (int64_t rank = 0; rank < grid.size(); ++rank) {
      const Coordinates at = grid.coordinates_of(rank);
      ASSERT_EQ(grid.rank_of(at), rank) << describe(grid);
      ASSERT_TRUE(at.tensor >= 0 && at.tensor < grid.tensor) << describe(grid);
      ASSERT_TRUE(at.context >= 0 && at.context < grid.context) << describe(grid);
      ASSERT_TRUE(at.pipeline >= 0 && at.pipeline < grid.pipeline) << describe(grid);
      ASSERT_TRUE(at.data >= 0 && at.data < grid.data) << describe(grid);
      seen.insert({at.tensor, at.context, at.pipeline, at.data});
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), grid.size()) << describe(grid);
  }
}

// All members name the same group; the groups of an axis cover every rank once.
TEST(Grid, GroupsPartitionTheRanks) {
  for (const Grid& grid : shapes()) {
    for (const Axis axis : all_axes) {
      std::vector<int64_t> covered;
      for (int64_t rank = 0; rank < grid.size(); ++rank) {
        const std::vector<int64_t> group = grid.group_of(rank, axis);
        ASSERT_EQ(static_cast<int64_t>(group.size()), grid.size_of(axis));
        ASSERT_EQ(std::count(group.begin(), group.end(), rank), 1);
        ASSERT_EQ(group[static_cast<size_t>(grid.place_of(rank, axis))], rank);
        for (const int64_t member : group) ASSERT_EQ(grid.group_of(member, axis), group);
        if (rank == group.front()) covered.insert(covered.end(), group.begin(), group.end());
      }
      std::sort(covered.begin(), covered.end());
      for (int64_t rank = 0; rank < grid.size(); ++rank)
        ASSERT_EQ(covered[static_cast<size_t>(rank)], rank) << describe(grid) << name_of(axis);
    }
  }
}

// Members of a group differ in the axis' own coordinates alone, which ascend.
TEST(Grid, GroupsVaryTheirOwnAxisAlone) {
  const Grid grid{2, 3, 2, 4};
  for (int64_t rank = 0; rank < grid.size(); ++rank) {
    const Coordinates at = grid.coordinates_of(rank);
    for (const Axis axis : all_axes) {
      int64_t place = 0;
      for (const int64_t member : grid.group_of(rank, axis)) {
        const Coordinates c = grid.coordinates_of(member);
        const bool world = axis == Axis::world;
        EXPECT_TRUE(world || axis == Axis::tensor || c.tensor == at.tensor);
        EXPECT_TRUE(world || axis == Axis::context || axis == Axis::zero ||
                    c.context == at.context);
        EXPECT_TRUE(world || axis == Axis::pipeline || c.pipeline == at.pipeline);
        EXPECT_TRUE(world || axis == Axis::data || axis == Axis::zero || c.data == at.data);
        EXPECT_TRUE(axis != Axis::zero || c.data * grid.context + c.context == place);
        ++place;
      }
    }
  }
}

// Stages between first and last have no part in the embedding.
TEST(Grid, EmbeddingIsSharedByBothEnds) {
  const Grid grid{2, 1, 3, 2};
  for (int64_t rank = 0; rank < grid.size(); ++rank) {
    const int64_t stage = grid.coordinates_of(rank).pipeline;
    EXPECT_EQ(grid.place_of(rank, Axis::embedding), stage == 0 ? 0 : stage == 2 ? 1 : -1);
  }
  EXPECT_EQ(grid.group_of(1, Axis::embedding), (std::vector<int64_t>{1, 5}));
}

}  // namespace
}  // namespace gptbench
