// Which ranks a trace has.
#include "run/trace_file.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

Grid grid_of(int64_t tensor, int64_t pipeline, int64_t data) {
  Grid grid;
  grid.tensor = tensor;
  grid.pipeline = pipeline;
  grid.data = data;
  return grid;
}

// Sixteen stages of eight ranks, of which the first 64 ranks are only eight.
TEST(TraceFile, HasARankOfEachStage) {
  const std::set<int64_t> ranks = traced_ranks(grid_of(8, 16, 2));
  EXPECT_EQ(ranks.size(), max_traced_ranks);
  for (int64_t stage = 0; stage < 16; ++stage) EXPECT_EQ(ranks.count(8 * stage), 1u) << stage;
  // 48 others, from the lowest on: seven of each eight up to rank 54.
  for (int64_t rank = 0; rank < 128; ++rank)
    EXPECT_EQ(ranks.count(rank) > 0, rank <= 54 || rank % 8 == 0) << rank;
}

TEST(TraceFile, HasAllOfAFewRanks) {
  EXPECT_EQ(traced_ranks(grid_of(1, 2, 2)), (std::set<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(traced_ranks(grid_of(1, 1, 64)).size(), 64u);
}

TEST(TraceFile, HasTheFirstStagesOfVeryMany) {
  const std::set<int64_t> ranks = traced_ranks(grid_of(2, 80, 1));
  EXPECT_EQ(ranks.size(), max_traced_ranks);
  for (const int64_t rank : ranks) EXPECT_EQ(rank % 2, 0) << rank;
}

}  // namespace
}  // namespace gptbench
