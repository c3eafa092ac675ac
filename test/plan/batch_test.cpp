#include "plan/batch.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

std::vector<int64_t> counts(const MicroBatches& all) {
  std::vector<int64_t> result;
  for (int64_t k = 0; k < all.size(); ++k) result.push_back(all[k].count);
  return result;
}

TEST(Batch, SharesDifferByAtMostOneSequence) {
  EXPECT_EQ(sequences_of(10, 4, 0).count, 3);
  EXPECT_EQ(sequences_of(10, 4, 1).count, 3);
  EXPECT_EQ(sequences_of(10, 4, 2).count, 2);
  EXPECT_EQ(sequences_of(10, 4, 2).first, 6);
  EXPECT_EQ(sequences_of(10, 4, 3).count, 2);
}

TEST(Batch, FortyEightByEleven) {
  EXPECT_EQ(counts({48, 1, 0, 11}), (std::vector<int64_t>{11, 11, 11, 11, 4}));
}

TEST(Batch, LastMicroBatchOfASmallerShareIsEmpty) {
  EXPECT_EQ(counts({3, 2, 0, 1}), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(counts({3, 2, 1, 1}), (std::vector<int64_t>{1, 0}));
  // 7 by 2 over 3 ranks: shares 3, 2, 2.
  EXPECT_EQ(counts({7, 3, 0, 2}), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(counts({7, 3, 1, 2}), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(counts({7, 3, 2, 2}), (std::vector<int64_t>{2, 0}));
}

TEST(Batch, AStepOfFullMicroBatchesKeepsRows) {
  MicroBatches all(7, 3, 1, 2);
  all.rows = 2048;
  const MicroBatches step = all.step_of(5);
  EXPECT_EQ(counts(step), (std::vector<int64_t>{2, 2, 2, 2, 2}));
  EXPECT_EQ(step.full(), 5);
  EXPECT_EQ(step.rows, 2048);
}

// Over ranks and micro-batches every sequence of the global batch is trained on exactly once, in
// the same number of micro-batches on every rank.
TEST(Batch, EverySequenceExactlyOnce) {
  for (int64_t global = 1; global <= 40; ++global) {
    for (int64_t data = 1; data <= std::min<int64_t>(global, 9); ++data) {
      for (int64_t micro = 1; micro <= global / data; ++micro) {
        std::vector<int> seen(static_cast<size_t>(global));
        const int64_t number = MicroBatches(global, data, 0, micro).size();
        for (int64_t rank = 0; rank < data; ++rank) {
          const MicroBatches mine(global, data, rank, micro);
          ASSERT_EQ(mine.size(), number);
          for (int64_t k = 0; k < mine.size(); ++k) {
            const SequenceRange range = mine[k];
            ASSERT_GE(range.count, 0);
            ASSERT_LE(range.count, micro);
            for (int64_t s = range.first; s < range.first + range.count; ++s)
              ++seen.at(static_cast<size_t>(s));
          }
        }
        for (const int times : seen)
          ASSERT_EQ(times, 1) << global << " over " << data << " by " << micro;
      }
    }
  }
}

}  // namespace
}  // namespace gptbench
