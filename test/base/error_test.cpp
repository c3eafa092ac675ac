#include "base/error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

namespace gptbench {
namespace {

TEST(ExitCodes, EveryCodeHasOneRow) {
  std::set<int> seen;
  for (const ExitCode& row : exit_codes) {
    EXPECT_TRUE(seen.insert(static_cast<int>(row.code)).second) << static_cast<int>(row.code);
    EXPECT_EQ(&exit_code(row.code), &row);
    EXPECT_STRNE(row.meaning, "");
  }
  EXPECT_EQ(seen, (std::set<int>{0, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(ExitCodes, StatusAttributesAreThoseOfTheSchema) {
  EXPECT_STREQ(exit_code(Exit::ok).status, "OK");
  EXPECT_STREQ(exit_code(Exit::usage).status, "");  // no file is written
  EXPECT_STREQ(exit_code(Exit::out_of_memory).status, "OOM");
  EXPECT_STREQ(exit_code(Exit::invalid).status, "INVALID");
  EXPECT_STREQ(exit_code(Exit::timeout).status, "TIMEOUT");
  for (Exit code : {Exit::non_finite, Exit::peer, Exit::io})
    EXPECT_STREQ(exit_code(code).status, "FAILED");
}

TEST(Error, KeepsCodeAndLine) {
  const Error error(Exit::io, "tokens.bin: truncated");
  EXPECT_EQ(error.code(), Exit::io);
  EXPECT_STREQ(error.what(), "tokens.bin: truncated");
}

TEST(Check, PassesSilently) {
  int evaluated = 0;
  GPTBENCH_CHECK(++evaluated == 1, "evaluated once");
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeathTest, NamesRankHostPlaceAndExpression) {
  const int one = 1;
  EXPECT_EXIT(
      {
        set_check_context(5, "node17", [](int status) { std::_Exit(status); });
        GPTBENCH_CHECK(one == 2, "one is " + std::to_string(one));
      },
      testing::ExitedWithCode(static_cast<int>(Exit::peer)),
      "rank 5 on node17: .*error_test.cpp:[0-9]+: CHECK.one == 2. failed: one is 1");
}

}  // namespace
}  // namespace gptbench
