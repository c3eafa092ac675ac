// Grammar: shapes of the result and places of every token. Values against gfortran:
// oracle_random_test.cpp.
#include "deck/namelist.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace gptbench {
namespace {

const Source source{"a.in"};

std::vector<Assignment> body(const std::string& items) {
  const std::vector<Group> groups = parse_namelist(source, "&g " + items + " /");
  EXPECT_EQ(groups.size(), 1u);
  return groups.at(0).assignments;
}

std::string message_of(const std::string& text) {
  try {
    parse_namelist(source, text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Namelist, GroupsInOrderWithTextBetween) {
  const auto groups =
      parse_namelist(source, "title: 5 = 4\n&One a=1 / &x\n ! &no\n/\n$two\n$end\nend");
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].name, "one");
  EXPECT_EQ(groups[1].name, "x");
  EXPECT_EQ(groups[2].name, "two");
  EXPECT_EQ(groups[0].place.line, 2);
  EXPECT_EQ(groups[0].place.column, 1);
  EXPECT_EQ(groups[1].place.column, 12);
}

TEST(Namelist, NothingInTextWithoutGroups) {
  EXPECT_TRUE(parse_namelist(source, "").empty());
  EXPECT_TRUE(parse_namelist(source, "steps = 5 / ! &run").empty());
  EXPECT_TRUE(parse_namelist(source, "costs $5, 3 $ &end").empty());
}

TEST(Namelist, PlacesOfKeysAndValues) {
  const auto items = parse_namelist(source, "&g\n\tabc = 1,\n  'x',2*T\n/").at(0).assignments;
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].place.line, 2);
  EXPECT_EQ(items[0].place.column, 2);
  ASSERT_EQ(items[0].values.size(), 3u);
  EXPECT_EQ(items[0].values[0].place.column, 8);
  EXPECT_EQ(items[0].values[1].place.line, 3);
  EXPECT_EQ(items[0].values[1].place.column, 3);
  EXPECT_EQ(items[0].values[2].place.column, 7);
  EXPECT_EQ(items[0].values[2].repeat, 2);
  EXPECT_EQ(items[0].values[2].text, "T");
}

// A column is a character, not a byte: the two dots take two bytes each.
TEST(Namelist, ColumnsCountCharacters) {
  const auto items = body("s='\u00e4\u00f6' t=1");
  EXPECT_EQ(items.at(1).place.column, 11);
}

TEST(Namelist, NullValues) {
  const auto items = body("a=,1,,2* b=");
  ASSERT_EQ(items[0].values.size(), 4u);
  EXPECT_EQ(items[0].values[0].kind, Token::Kind::null);
  EXPECT_EQ(items[0].values[1].text, "1");
  EXPECT_EQ(items[0].values[2].kind, Token::Kind::null);
  EXPECT_FALSE(items[0].values[2].repeated);
  EXPECT_EQ(items[0].values[3].kind, Token::Kind::null);
  EXPECT_TRUE(items[0].values[3].repeated);
  EXPECT_EQ(items[0].values[3].repeat, 2);
  EXPECT_TRUE(items[1].values.empty());
}

TEST(Namelist, Subscripts) {
  const auto items = body("a(2)=1 b(:3)=1 c(2:)=1 d(1:5:2)=1 e=1");
  EXPECT_EQ(items[0].subscript.form, Subscript::Form::element);
  EXPECT_EQ(items[0].subscript.first, 2);
  EXPECT_EQ(items[1].subscript.form, Subscript::Form::section);
  EXPECT_EQ(items[1].subscript.first, 1);
  EXPECT_EQ(items[1].subscript.last, 3);
  EXPECT_EQ(items[2].subscript.first, 2);
  EXPECT_EQ(items[2].subscript.last, -1);
  EXPECT_EQ(items[3].subscript.stride, 2);
  EXPECT_EQ(items[4].subscript.form, Subscript::Form::none);
}

TEST(Namelist, ValueListOfAnOverride) {
  const Source place{"command line: argument 2", false};
  EXPECT_EQ(parse_value_list(place, " 5 ").size(), 1u);
  EXPECT_EQ(parse_value_list(place, "'a','b'").size(), 2u);
  try {
    parse_value_list(place, "5 / 6");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "command line: argument 2: unexpected '/' in the value");
  }
}

TEST(Namelist, Messages) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"&g a=1", "a.in:1:1: group &g is not ended: its '/' is missing"},
      {"\n &g a=1\n&h b=2 /",
       "a.in:3:1: group &g (line 2) is not ended before '&h': its '/' is missing"},
      {"&g / &g /", "a.in:1:6: group &g is given twice, first on line 1; merge the two"},
      {"& g /", "a.in:1:1: expected the name of a group directly after '&', as in &run"},
      {"&g=1 /", "a.in:1:3: expected a blank after &g, found '='"},
      {"&g\n a='x\n /",
       "a.in:2:4: string is not closed: its ' is missing; quotes inside a string are doubled"},
      {"&g a=\"it\"s\" /", "a.in:1:10: expected a blank or ',' after the string, found 's'"},
      {"&g a 5 /", "a.in:1:6: expected '=' after 'a', found '5'"},
      {"&g a\n/", "a.in:2:1: expected '=' after 'a', found '/'"},
      {"&g a(x", "a.in:1:6: expected an integer in the subscript, as in a(2), found 'x'"},
      {"&g a(\n",
       "a.in:1:6: expected an integer in the subscript, as in a(2), found the end of the "
       "line"},
      {"&g a(1\r\n", "a.in:1:7: expected ')' after the subscript, found the end of the line"},
      {"&g a(1:2 )=5 /", "a.in:1:9: expected ')' after the subscript, found a blank"},
      {"&g a(1", "a.in:1:7: expected ')' after the subscript, found the end of the text"},
      {"&g 5=a /", "a.in:1:4: expected a key or the '/' that ends the group, found '5'"},
      {"&g a==5 /", "a.in:1:6: unexpected '=' where a value is expected"},
      {"&g a=5? /", "a.in:1:7: unexpected '?' in the value '5'"},
      {"&g a=0*5 /", "a.in:1:6: repeat count is 0; it must be at least 1"},
      {"&g a=99999999999999999999*5 /", "a.in:1:6: repeat count is too large"},
      {"&g a(0)=5 /", "a.in:1:6: subscript must be at least 1"},
      {"&g a(-3)=5 /", "a.in:1:6: subscript must be at least 1"},
      {"&g a(x)=5 /", "a.in:1:6: expected an integer in the subscript, as in a(2), found 'x'"},
      {"&g a(1,2)=5 /", "a.in:1:7: arrays of a deck have one subscript"},
      {"&g a(3:2)=5 /", "a.in:1:5: the section holds no element"},
      {"&g a(1=5 /", "a.in:1:7: expected ')' after the subscript, found '='"},
      {std::string("&g a=1\n\0/", 9),
       "a.in:2:1: character 0x00 (NUL): a deck is text; was another file given by mistake?"},
      {"&g \x1b[1m /",
       "a.in:1:4: character 0x1b: a deck is text; was another file given by mistake?"},
      {"&g a='\xff' /", "a.in:1:7: character 0xff is not UTF-8; save the deck as UTF-8 or ASCII"},
      {"&g a='\xc3", "a.in:1:7: character 0xc3 is not UTF-8; save the deck as UTF-8 or ASCII"},
      {"&g \u00e9=1 /",
       "a.in:1:4: expected a key or the '/' that ends the group, found character 0xc3"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(message_of(text), message) << text;
}

// A deck is small, but nothing in the grammar may be quadratic in its length.
TEST(Namelist, LongTexts) {
  std::string values;
  for (int i = 0; i < 100000; ++i) values += "1 ";
  EXPECT_EQ(body("a=" + values).at(0).values.size(), 100000u);
  EXPECT_EQ(body("a='" + values + "'").at(0).values.at(0).text, values);
  EXPECT_TRUE(parse_namelist(source, "!" + values).empty());
  EXPECT_EQ(body(std::string(200000, '\n') + "a=1").at(0).place.line, 200001);
  std::string groups;
  for (int i = 0; i < 300000; ++i) groups += "&g" + std::to_string(i) + " /\n";
  EXPECT_EQ(parse_namelist(source, groups).size(), 300000u);
}

}  // namespace
}  // namespace gptbench
