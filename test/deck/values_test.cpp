// Numbers in Fortran's forms, distribution over arrays, and the way back to text. Reading is
// compared with gfortran in oracle_random_test.cpp; here are the messages and the round trip.
#include "deck/values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/random.h"

namespace gptbench {
namespace {

const Source source{"a.in"};

Token word(const std::string& text) {
  Token token;
  token.kind = Token::Kind::word;
  token.text = text;
  token.place = {3, 4};
  return token;
}

template <typename Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Values, Integers) {
  EXPECT_EQ(to_integer(source, word("+007"), ""), 7);
  EXPECT_EQ(to_integer(source, word("-9223372036854775808"), ""),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(message_of([] { to_integer(source, word("5.0"), "steps takes 1 to 9"); }),
            "a.in:3:4: '5.0' is not an integer; steps takes 1 to 9");
  EXPECT_EQ(message_of([] { to_integer(source, word("9223372036854775808"), ""); }),
            "a.in:3:4: '9223372036854775808' is beyond the range of a 64-bit integer");
  for (const char* text : {"", "+", "-", "1e3", "0x1", "1_8", "--1", "1-"}) {
    EXPECT_THROW(to_integer(source, word(text), ""), Error) << text;
  }
}

TEST(Values, Reals) {
  EXPECT_EQ(to_real(source, word("1.d-3"), ""), 1e-3);
  EXPECT_EQ(to_real(source, word("1.D+3"), ""), 1e3);
  EXPECT_EQ(to_real(source, word("-.5Q1"), ""), -5.0);
  EXPECT_EQ(to_real(source, word("6-4"), ""), 6e-4);
  EXPECT_EQ(to_real(source, word("12"), ""), 12.0);
  EXPECT_EQ(message_of([] { to_real(source, word("0,5e"), ""); }),
            "a.in:3:4: '0,5e' is not a real number");
  for (const char* text : {"", ".", "+", "e5", ".e5", "1e", "1e+", "1.2.3", "0x1p3", "1d1d1"}) {
    EXPECT_THROW(to_real(source, word(text), ""), Error) << text;
  }
}

TEST(Values, Logicals) {
  for (const char* text : {"T", "t", ".t.", ".TRUE.", "true"}) {
    EXPECT_TRUE(to_logical(source, word(text), "")) << text;
  }
  for (const char* text : {"F", "f", ".f.", ".False.", "false"}) {
    EXPECT_FALSE(to_logical(source, word(text), "")) << text;
  }
  for (const char* text : {"1", "0", "yes", ".", "..t", "on"}) {
    EXPECT_THROW(to_logical(source, word(text), ""), Error) << text;
  }
}

TEST(Values, StringsNeedQuotes) {
  EXPECT_EQ(message_of([] { to_string(source, word("host"), ""); }),
            "a.in:3:4: 'host' is not a string: write 'host'");
  Token token = word("abc  ");
  token.kind = Token::Kind::string;
  EXPECT_EQ(to_string(source, token, ""), "abc");
  token.text = "   ";
  EXPECT_EQ(to_string(source, token, ""), "");
}

TEST(Values, DistributionOverArrays) {
  Assignment assignment;
  assignment.key = "a";
  assignment.values = parse_value_list(source, "2*7,,5");
  const auto elements = distribute(source, assignment, 4, true);
  ASSERT_EQ(elements.size(), 3u);
  EXPECT_EQ(elements[0].index, 1);
  EXPECT_EQ(elements[1].index, 2);
  EXPECT_EQ(elements[2].index, 4);
  EXPECT_EQ(elements[2].token->text, "5");
  EXPECT_EQ(message_of([&] { distribute(source, assignment, 3, true); }),
            "a.in:1:6: too many values for 'a'; it takes 3 here");
  EXPECT_EQ(message_of([&] { distribute(source, assignment, 1, false); }),
            "a.in:1:1: 'a' takes one value");
  // A repeat count far beyond the array is refused before anything of its size is made.
  assignment.values = parse_value_list(source, "200000000*1");
  EXPECT_THROW(distribute(source, assignment, 4, true), Error);
}

// Shortest digits that read back as the same bits: 20,000 doubles with random bits, and the limits.
TEST(Values, RealsSurviveTheRoundTrip) {
  std::vector<double> values = {
      0.0, 0.1, 1.0, 6e-4, 1e-8, 1e22, 1e23, 5e-324, 1.7976931348623157e308, 123456789.0};
  for (uint64_t i = 0; i < 20000; ++i) {
    const uint64_t bits =
        (static_cast<uint64_t>(random_word(7, RandomStream::test, 0, 2 * i)) << 32) |
        random_word(7, RandomStream::test, 0, 2 * i + 1);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (value - value == 0.0) values.push_back(value);  // finite
  }
  for (const double value : values) {
    const std::string text = format_real(value);
    EXPECT_EQ(to_real(source, word(text), ""), value) << text;
    EXPECT_NE(text.find_first_of(".e"), std::string::npos) << text << " would be an integer";
  }
  EXPECT_EQ(format_real(6e-4), "0.0006");
  EXPECT_EQ(format_real(1.0), "1.0");
}

TEST(Values, StringsSurviveTheRoundTrip) {
  for (const std::string text : {"", "it's", "\"", "''", "a ! / , = &", "\u00e9"}) {
    const auto tokens = parse_value_list(source, format_string(text));
    ASSERT_EQ(tokens.size(), 1u);
    EXPECT_EQ(to_string(source, tokens[0], ""), text);
  }
}

}  // namespace
}  // namespace gptbench
