#include "comm/agree.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

// What all ranks make of a call that throws where `throws_here`.
template <class Local>
std::string outcome(MpiWorld& world, Local local) {
  try {
    agreed(world, local);
  } catch (const AgreedError& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "fine";
}

TEST(Agreed, NothingHappensWhereNobodyFails) {
  MpiWorld world(nullptr, nullptr);
  int calls = 0;
  EXPECT_EQ(outcome(world, [&] { ++calls; }), "fine");
  EXPECT_EQ(calls, 1);
}

// Whichever rank fails, all throw its message and code.
TEST(Agreed, OneRankFails) {
  MpiWorld world(nullptr, nullptr);
  for (int64_t failing = 0; failing < world.size(); ++failing) {
    EXPECT_EQ(outcome(world,
                      [&] {
                        if (world.rank() == failing)
                          throw Error(Exit::io, "rank " + std::to_string(failing) + " failed");
                      }),
              "7 rank " + std::to_string(failing) + " failed");
  }
}

// The failure of the lowest rank is taken, code and message together.
TEST(Agreed, LowestRankSpeaks) {
  MpiWorld world(nullptr, nullptr);
  const int64_t lowest = world.size() > 1 ? 1 : 0;
  EXPECT_EQ(outcome(world,
                    [&] {
                      if (world.rank() == lowest) throw Error(Exit::usage, "lowest");
                      if (world.rank() > lowest) throw Error(Exit::io, "another");
                    }),
            "2 lowest");
}

TEST(Agreed, AllRanksFail) {
  MpiWorld world(nullptr, nullptr);
  EXPECT_EQ(
      outcome(world, [&] { throw Error(Exit::usage, "rank " + std::to_string(world.rank())); }),
      "2 rank 0");
  // The world is in order afterwards.
  EXPECT_EQ(world.sum(int64_t{1}), world.size());
}

TEST(FirstText, IsThatOfTheLowestRankThatHasOne) {
  MpiWorld world(nullptr, nullptr);
  EXPECT_EQ(first_text(world, ""), "");
  for (int64_t lowest = 0; lowest < world.size(); ++lowest)
    EXPECT_EQ(
        first_text(world, world.rank() >= lowest ? "rank " + std::to_string(world.rank()) : ""),
        "rank " + std::to_string(lowest));
}

}  // namespace
}  // namespace gptbench
