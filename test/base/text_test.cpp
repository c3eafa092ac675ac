#include "base/text.h"
#include "base/lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/printable.h"

namespace gptbench {
namespace {

using Words = std::vector<std::string>;

TEST(Text, LowerTouchesAsciiLettersAlone) {
  EXPECT_EQ(lower("Num_LAYERS 12 \xC3\x84"), "num_layers 12 \xC3\x84");
}

TEST(Text, Trim) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, SplitTrimsAndDropsEmptyFields) {
  EXPECT_EQ(split("optimizer, parameters ,activations", ','),
            (Words{"optimizer", "parameters", "activations"}));
  EXPECT_EQ(split(",, a,", ','), Words{"a"});
  EXPECT_EQ(split("", ','), Words{});
}

TEST(Text, LinesAreTrimmedAndEmptyOnesDropped) {
  Words lines;
  for_each_line("\n a b\r\n\n \nc, d", [&](const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(lines, (Words{"a b", "c, d"}));
}

TEST(Text, NumbersOfLists) {
  EXPECT_EQ(numbers_of_list("0-2,8"), (std::vector<int>{0, 1, 2, 8}));
  EXPECT_TRUE(numbers_of_list("").empty());
  for (const char* broken : {"x", "3-1", "1;2", "-1", "1-", "0-99999999"})
    EXPECT_TRUE(numbers_of_list(broken).empty()) << broken;
}

TEST(Text, Join) {
  EXPECT_EQ(join({"host", "cuda", "ref"}, ", "), "host, cuda, ref");
  EXPECT_EQ(join({"one"}, ", "), "one");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Text, PrintableWritesOutWhatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[2J\r\a\x7f\n\tb"), "a\\x1b[2J\\x0d\\x07\\x7f\n\tb");
  EXPECT_EQ(printable(std::string(1, '\0') + " ~"), "\\x00 ~");
  EXPECT_EQ(printable("\xc2\x9b[\xc2\x80"), "\\xc2\\x9b[\\xc2\\x80");  // U+009B: as ESC [
  const std::string text =
      "\xc2\xa0\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82";  // U+00A0, e with acute, euro sign, a face
  EXPECT_EQ(printable(text), text);
}

TEST(Text, PrintableWritesOutWhatIsNotUtf8) {
  EXPECT_EQ(printable("\x9b \xc3"), "\\x9b \\xc3");             // lone bytes
  EXPECT_EQ(printable("\xe2\x82 \xc3("), "\\xe2\\x82 \\xc3(");  // cut characters
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");      // ESC, overlong
  EXPECT_EQ(printable("\xf0\x80\x80\x9b"), "\\xf0\\x80\\x80\\x9b");
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");  // beyond U+10FFFF
}

TEST(Text, NearestFindsMisspeltKeys) {
  const Words keys = {"num_layers", "hidden_size", "seq_length", "lr", "clip"};
  EXPECT_EQ(nearest("num_layer", keys), "num_layers");    // a letter missing
  EXPECT_EQ(nearest("hiden_sise", keys), "hidden_size");  // missing and wrong
  EXPECT_EQ(nearest("seq_lenght", keys), "seq_length");   // two letters swapped
  EXPECT_EQ(nearest("clpi", keys), "clip");
  EXPECT_EQ(nearest("deepspeed", {"megatron", "deeperror"}), "");           // four of nine letters
  EXPECT_EQ(nearest("deepspeed", {"megatron", "deepspoon"}), "deepspoon");  // three of nine
  EXPECT_EQ(nearest("num_layers", keys), "num_layers");
}

TEST(Text, NearestIsSilentWhenNothingIsNear) {
  const Words keys = {"num_layers", "hidden_size"};
  EXPECT_EQ(nearest("temperature", keys), "");
  EXPECT_EQ(nearest("x", Words{}), "");
  EXPECT_EQ(nearest("layers", keys), "");  // four letters missing of ten
}

TEST(Text, NearestPrefersTheFirstOfEquallyNearOnes) {
  EXPECT_EQ(nearest("bat", {"cat", "hat"}), "cat");
}

}  // namespace
}  // namespace gptbench
