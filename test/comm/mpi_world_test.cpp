#include "comm/mpi_world.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/mpi_library.h"

namespace gptbench {
namespace {

TEST(MpiWorld, RanksAndNodes) {
  MpiWorld world(nullptr, nullptr);
  EXPECT_EQ(world.sum(int64_t{1}), world.size());
  EXPECT_EQ(world.sum(world.rank()), world.size() * (world.size() - 1) / 2);
  EXPECT_GE(world.node(), 0);
  EXPECT_LT(world.node(), world.num_nodes());
  EXPECT_EQ(world.node_sum(1), world.node_size());
  EXPECT_LT(world.node_rank(), world.node_size());
  EXPECT_EQ(world.sum(world.node_rank() == 0 ? int64_t{1} : int64_t{0}), world.num_nodes());
  const std::string library = mpi_library_name();
  EXPECT_FALSE(library.empty());
  EXPECT_EQ(library.find('\n'), std::string::npos);
  // All ranks run one library; those that this project is built with can say.
  const int64_t answer = static_cast<int64_t>(mpi_gpu_arrays());
  EXPECT_EQ(world.min(answer), world.max(answer));
  if (library.find("Open MPI") != std::string::npos) {
    EXPECT_NE(mpi_gpu_arrays(), GpuArrays::unknown) << library;
  }
}

// Ranks that take turns on two nodes: 0 and 2 on the first, 1 and 3 on the second.
TEST(MpiWorld, RanksThatTakeTurnsKnowTheirNode) {
  MpiWorld whole(nullptr, nullptr);
  const char* const ranks_per_node[] = {"4", "1", "4", "2"};
  ASSERT_LE(whole.size(), 4);
  setenv("GPTBENCH_RANKS_PER_NODE", ranks_per_node[whole.rank()], 1);
  MpiWorld world(nullptr, nullptr);
  unsetenv("GPTBENCH_RANKS_PER_NODE");
  EXPECT_EQ(world.num_nodes(), world.size() > 1 ? 2 : 1);
  EXPECT_EQ(world.node(), world.rank() % 2);
  EXPECT_EQ(world.node_rank(), world.rank() / 2);
  const std::vector<int64_t> sizes = world.node_sizes();
  ASSERT_EQ(static_cast<int64_t>(sizes.size()), world.num_nodes());
  for (int64_t node = 0; node < world.num_nodes(); ++node)
    EXPECT_EQ(sizes[static_cast<size_t>(node)], (world.size() + 1 - node) / 2);
}

TEST(MpiWorld, ShortNamesOfLibraries) {
  EXPECT_EQ(library_name("Open MPI v4.1.4, package: Debian, ident: 4.1.4"), "Open MPI v4.1.4");
  EXPECT_EQ(library_name("MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7\n"),
            "MPICH 4.0.2");
  EXPECT_EQ(library_name("Another MPI\n1.0\n"), "Another MPI 1.0");
}

TEST(MpiWorld, BroadcastsWhatRankZeroHas) {
  MpiWorld world(nullptr, nullptr);
  const std::string texts[] = {"", "one line", std::string("with\0NUL", 8),
                               std::string(300000, 'x')};
  for (const std::string& expected : texts) {
    std::string text = world.rank() == 0 ? expected : "what the others had";
    world.broadcast(text);
    EXPECT_EQ(text, expected);
  }
  int64_t value = world.rank() == 0 ? int64_t{-5000000000} : 7;
  world.broadcast(value);
  EXPECT_EQ(value, -5000000000);
}

// In one message of each rank, and in several.
TEST(MpiWorld, GathersTexts) {
  MpiWorld world(nullptr, nullptr);
  const auto text_of = [](int64_t rank) {
    return std::string(static_cast<size_t>(7 * rank), static_cast<char>('a' + rank % 26));
  };
  for (const int most_at_once : {1 << 20, 3, 0x7fffffff}) {
    const std::vector<std::string> texts = world.gather(text_of(world.rank()), most_at_once);
    ASSERT_EQ(texts.size(), world.rank() == 0 ? static_cast<size_t>(world.size()) : 0u);
    for (size_t r = 0; r < texts.size(); ++r) EXPECT_EQ(texts[r], text_of(static_cast<int64_t>(r)));
  }
}

TEST(MpiWorld, Reductions) {
  MpiWorld world(nullptr, nullptr);
  const int64_t last = world.size() - 1;
  EXPECT_EQ(world.min(10 - world.rank()), 10 - last);
  EXPECT_EQ(world.max(10 + world.rank()), 10 + last);
  EXPECT_EQ(world.max(0.5 * static_cast<double>(world.rank())), 0.5 * static_cast<double>(last));
  EXPECT_TRUE(world.all(true));
  EXPECT_FALSE(world.all(false));
  EXPECT_FALSE(world.all(world.rank() != last));
}

TEST(MpiWorld, GathersOnRankZero) {
  MpiWorld world(nullptr, nullptr);
  const double rank = static_cast<double>(world.rank());
  const std::vector<double> values = world.gather(std::vector<double>{rank, -rank});
  // Texts of different lengths, rank 0's empty.
  const std::vector<std::string> texts =
      world.gather(std::string(static_cast<size_t>(3 * world.rank()), 'r'));
  if (world.rank() != 0) {
    EXPECT_TRUE(values.empty());
    EXPECT_TRUE(texts.empty());
    return;
  }
  ASSERT_EQ(static_cast<int64_t>(values.size()), 2 * world.size());
  ASSERT_EQ(static_cast<int64_t>(texts.size()), world.size());
  for (size_t r = 0; r < texts.size(); ++r) {
    EXPECT_EQ(values[2 * r], static_cast<double>(r));
    EXPECT_EQ(values[2 * r + 1], -static_cast<double>(r));
    EXPECT_EQ(texts[r], std::string(3 * r, 'r'));
  }
}

TEST(MpiWorld, SumsOnRankZero) {
  MpiWorld world(nullptr, nullptr);
  const double n = static_cast<double>(world.size()), rank = static_cast<double>(world.rank());
  std::vector<double> values{rank, -1.0};
  world.sum_on_first(values);
  const bool first = world.rank() == 0;
  EXPECT_EQ(values,
            (first ? std::vector<double>{n * (n - 1.0) / 2.0, -n} : std::vector<double>{0.0, 0.0}));
}

TEST(MpiWorld, CommunicatorsFollowTheGrid) {
  MpiWorld world(nullptr, nullptr);
  std::vector<Grid> grids = {{1, 1, 1, world.size()},
                             {world.size(), 1, 1, 1},
                             {1, world.size(), 1, 1},
                             {1, 1, world.size(), 1}};
  if (world.size() == 4) {
    grids.push_back({2, 1, 2, 1});
    grids.push_back({1, 2, 1, 2});
  }
  for (const Grid& grid : grids) {
    for (const Axis axis :
         {Axis::tensor, Axis::context, Axis::pipeline, Axis::data, Axis::zero, Axis::world}) {
      const auto comm = world.make_communicator(grid, axis);
      const std::vector<int64_t> group = grid.group_of(world.rank(), axis);
      ASSERT_EQ(comm->size(), static_cast<int64_t>(group.size())) << describe(grid);
      EXPECT_EQ(group[static_cast<size_t>(comm->rank())], world.rank()) << describe(grid);
    }
  }
}

// All ranks but the first, in reverse order.
TEST(MpiWorld, CommunicatorsOfSomeRanks) {
  MpiWorld world(nullptr, nullptr);
  if (world.size() == 1) GTEST_SKIP() << "needs 2 ranks: the grid covers all but one";
  const Grid grid{1, 1, 1, world.size() - 1};
  const int64_t rank = world.rank() == 0 ? -1 : world.size() - 1 - world.rank();
  for (const Axis axis : {Axis::tensor, Axis::data, Axis::world}) {
    const auto comm = world.make_communicator(grid, axis, rank);
    EXPECT_EQ(comm == nullptr, rank < 0);
    if (comm == nullptr) continue;
    EXPECT_EQ(comm->size(), grid.size_of(axis));
    EXPECT_EQ(comm->rank(), grid.place_of(rank, axis));
  }
}

}  // namespace
}  // namespace gptbench
