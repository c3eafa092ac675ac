#include "io/reduce.h"

#include <gtest/gtest.h>

#include "io/result_file.h"
#include "made_record.h"

namespace gptbench {
namespace {

Record record_of(int64_t ranks) {
  Record record;
  RankSeries series{"forward", "s", "", {}, 2, ranks, false};
  for (int64_t step = 0; step < 2; ++step)
    for (int64_t rank = 0; rank < ranks; ++rank)
      // Largest at rank 7 of step 0 and rank 0 of step 1.
      series.values.push_back(step == 0 ? (rank == 7 ? 1e6 : static_cast<double>(rank))
                                        : static_cast<double>(-rank));
  record.timing = {series};
  const std::vector<int64_t> ones(static_cast<size_t>(ranks), 1);
  const std::vector<double> halves(static_cast<size_t>(ranks), 0.5);
  record.memory = {{"peak", "", ones, false}};
  record.offload = {{"load", "", ones, false}};
  record.comm = {{"data", "all_reduce", ones, ones, halves, halves, halves, false}};
  return record;
}

TEST(Reduce, UpTo1024RanksStayAsTheyAre) {
  const Record record = reduced_over_ranks(record_of(1024));
  EXPECT_EQ(record.timing[0].ranks, 1024);
  EXPECT_FALSE(record.memory[0].reduced);
  EXPECT_EQ(record.comm[0].bytes.size(), 1024u);
}

TEST(Reduce, BeyondThatMinimumMedianMaximumAndItsRank) {
  const Record record = decode_result(encode_result(reduced_over_ranks(record_of(1025))));
  const RankSeries& series = record.timing[0];
  EXPECT_TRUE(series.reduced);
  EXPECT_EQ(series.ranks, 4);
  // Step 0: 0 .. 1024 with 7 replaced by 10^6; the median of 1025 values moves from 512 to 513.
  EXPECT_EQ(series.values, (std::vector<double>{0, 513, 1e6, 7, -1024, -512, 0, 0}));
  EXPECT_TRUE(record.memory[0].reduced);
  EXPECT_EQ(record.memory[0].bytes, std::vector<int64_t>{1025});
  EXPECT_EQ(record.offload[0].bytes, std::vector<int64_t>{1025});
  EXPECT_TRUE(record.comm[0].reduced);
  EXPECT_EQ(record.comm[0].count, std::vector<int64_t>{1025});
  EXPECT_EQ(record.comm[0].bytes, std::vector<int64_t>{1025});
  EXPECT_EQ(record.comm[0].time_s, std::vector<double>{512.5});
  EXPECT_EQ(record.comm[0].least_s, std::vector<double>{512.5});
  EXPECT_EQ(record.comm[0].exposed_s, std::vector<double>{512.5});
}

// Computing times of each rank after one step of warm-up are 10 + rank - 1 and 20 + rank - 2.
TEST(Reduce, TheMedianOfEachRankIsKeptBesideReducedSeries) {
  const auto with_steps = [](int64_t ranks) {
    Record record = record_of(ranks);
    record.steps.warmup_steps = 1;
    RankSeries step{"step", "s", "", {}, 3, ranks, false};
    RankSeries communication = step;
    communication.name = "communication";
    for (const double time_s : {1000.0, 10.0, 20.0})
      for (int64_t rank = 0; rank < ranks; ++rank) {
        step.values.push_back(time_s + static_cast<double>(rank));
        communication.values.push_back(0.1 * time_s);
      }
    record.timing.push_back(step);
    record.timing.push_back(communication);
    return record;
  };
  const Record record = decode_result(encode_result(reduced_over_ranks(with_steps(1025))));
  ASSERT_EQ(record.rank_computing_s.size(), 1025u);
  EXPECT_DOUBLE_EQ(record.rank_computing_s[0], 13.5);
  EXPECT_DOUBLE_EQ(record.rank_computing_s[1024], 1037.5);
  EXPECT_EQ(reduced_over_ranks(record).rank_computing_s, record.rank_computing_s);
  // Full series tell it, and a file without the step has none.
  EXPECT_TRUE(reduced_over_ranks(with_steps(1024)).rank_computing_s.empty());
  EXPECT_TRUE(reduced_over_ranks(record_of(1025)).rank_computing_s.empty());
}

// 2^62 bytes on each rank: no integer holds the sum.
TEST(Reduce, ASumThatIsTooLargeIsNotKnown) {
  Record record = record_of(1025);
  record.comm[0].bytes.assign(1025, int64_t{1} << 62);
  EXPECT_EQ(reduced_over_ranks(record).comm[0].bytes, std::vector<int64_t>{0});
}

TEST(Reduce, LongSeriesOfAFewRanks) {
  Record record = record_of(5);
  const int64_t steps = max_values_in_full / 5;
  record.timing[0].values.assign(static_cast<size_t>(5 * steps), 0.5);
  record.timing[0].steps = steps;
  EXPECT_FALSE(reduced_over_ranks(record).timing[0].reduced);
  record.timing[0].values.resize(static_cast<size_t>(5 * steps + 5), 2.0);
  ++record.timing[0].steps;
  const Record reduced = reduced_over_ranks(record);
  EXPECT_TRUE(reduced.timing[0].reduced);
  EXPECT_EQ(reduced.timing[0].values.back(), 0.0);  // of the maximum the first rank
  EXPECT_FALSE(reduced.memory[0].reduced);

  // The four figures that would replace the times of four ranks take as much memory.
  record = record_of(4);
  record.timing[0].values.assign(static_cast<size_t>(4 * steps * 2), 0.5);
  record.timing[0].steps = 2 * steps;
  EXPECT_FALSE(reduced_over_ranks(record).timing[0].reduced);
}

// The median of an even number of values is the mean of the two in the middle. Step 0: 0 .. 1025
// with 7 replaced by 10^6, so 513 and 514; step 1: 0 .. -1025, so -512 and -513.
// What is reduced stays as it is.
TEST(Reduce, MedianOfAnEvenNumberOfRanks) {
  const Record once = reduced_over_ranks(record_of(1026));
  for (const Record& record : {once, reduced_over_ranks(once)}) {
    EXPECT_EQ(record.timing[0].values,
              (std::vector<double>{0, 513.5, 1e6, 7, -1025, -512.5, 0, 0}));
    EXPECT_EQ(record.memory[0].bytes, std::vector<int64_t>{1026});
    EXPECT_EQ(record.comm[0].time_s, std::vector<double>{513});
  }
}

}  // namespace
}  // namespace gptbench
