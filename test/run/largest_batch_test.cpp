#include "run/largest_batch.h"

#include <gtest/gtest.h>

#include <set>

#include "deck/validate.h"

namespace gptbench {
namespace {

// Candidates of a deck for as many ranks as it has replicas: 8.
BatchCandidates candidates_of(const std::string& keys) {
  const Deck deck = parse_deck("d.in", "&run " + keys + " /", {});
  return BatchCandidates(deck, resolve(deck, 8));
}

const std::string micro = "find_largest = 'micro_batch' ",
                  global = "find_largest = 'global_batch' ",
                  powers = "find_largest_over = 'powers_of_two' ",
                  batch = "/ &batch micro_batch_size = 2 global_batch_size = 64 ";

// The worked example of largest_batch.h.
TEST(LargestBatch, CandidatesAreNumberedFromOne) {
  EXPECT_EQ(candidates_of(micro + batch).name(3), "micro_batch_size = 3");
  EXPECT_EQ(candidates_of(micro + batch).at(3).batch.global_batch_size, 64);
  EXPECT_EQ(candidates_of(global + batch).name(3), "global_batch_size = 96");
  EXPECT_EQ(candidates_of(micro + powers + batch).name(3), "micro_batch_size = 4");
  EXPECT_EQ(candidates_of(global + powers + batch).name(3), "global_batch_size = 128");
  EXPECT_EQ(candidates_of(global + powers + batch).at(3).batch.micro_batch_size, 4);
}

TEST(LargestBatch, GlobalBatchOfTheDeckBoundsTheCandidates) {
  const auto most = [](const std::string& keys) {
    return largest_candidate(candidates_of(keys), [](int64_t) { return true; });
  };
  EXPECT_EQ(most(micro + batch), 8);
  EXPECT_EQ(most(micro + powers + batch), 4);
  EXPECT_EQ(most(micro + powers + "/ &batch global_batch_size = 60 "), 3);  // 7 sequences a rank
  EXPECT_EQ(candidates_of(micro + powers).at(31).batch.micro_batch_size, int64_t{1} << 30);
  EXPECT_FALSE(candidates_of(micro + powers).is_allowed(32));
  EXPECT_FALSE(candidates_of(micro + powers).is_allowed(64));
}

TEST(LargestBatch, LargestThatFits) {
  for (int64_t fitting = 0; fitting < 70; ++fitting) {
    const auto largest = [&](const std::string& keys) {
      const BatchCandidates candidates = candidates_of(keys);
      return largest_candidate(candidates, [&](int64_t candidate) {
        return candidates.at(candidate).batch.micro_batch_size <= fitting;
      });
    };
    EXPECT_EQ(largest(micro), fitting);
    int64_t of_powers = 0;
    while (int64_t{1} << of_powers <= fitting) ++of_powers;
    EXPECT_EQ(largest(micro + powers), of_powers);
  }
}

// Memory that the plan does not know may be short: `running` candidates run in fact.
TEST(LargestBatch, LargestThatRuns) {
  for (int64_t running = 0; running <= 40; ++running) {
    std::vector<int64_t> tried;
    const auto runs = [&](int64_t candidate) -> std::optional<bool> {
      tried.push_back(candidate);
      return candidate <= running;
    };
    EXPECT_EQ(largest_that_runs(40, runs), running);
    EXPECT_EQ(tried.front(), 40);
    EXPECT_LE(tried.size(), 12u);  // 1, 2, 4, ... below, then bisection
    EXPECT_EQ(std::set<int64_t>(tried.begin(), tried.end()).size(), tried.size());
    if (running == 20) {
      EXPECT_EQ(tried, (std::vector<int64_t>{40, 39, 37, 33, 25, 9, 17, 21, 19, 20}));
    }
  }
}

TEST(LargestBatch, AnotherFailureEndsTheSearch) {
  for (const bool some_ran : {false, true}) {
    int tries = 0;
    const auto runs = [&](int64_t) -> std::optional<bool> {
      if (++tries < 3) return some_ran && tries == 2;
      return {};
    };
    EXPECT_EQ(largest_that_runs(40, runs), some_ran ? 39 : 0);
    EXPECT_EQ(tries, some_ran ? 2 : 3);
  }
  int tries = 0;
  EXPECT_EQ(largest_that_runs(40,
                              [&](int64_t candidate) -> std::optional<bool> {
                                if (++tries == 4) return {};
                                return candidate <= 37;
                              }),
            37);
}

}  // namespace
}  // namespace gptbench
