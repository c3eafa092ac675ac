#include "base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(Text, Join) {
  EXPECT_EQ(join({"host", "cuda", "ref"}, ", "), "host, cuda, ref");
  EXPECT_EQ(join({"one"}, ", "), "one");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Text, NearestFindsMisspeltKeys) {
  const Words keys = {"num_layers", "hidden_size", "seq_length", "lr", "clip"};
  EXPECT_EQ(nearest("num_layer", keys), "num_layers");    // a letter missing
  EXPECT_EQ(nearest("hiden_sise", keys), "hidden_size");  // missing and wrong
  EXPECT_EQ(nearest("seq_lenght", keys), "seq_length");   // two letters swapped
  EXPECT_EQ(nearest("clpi", keys), "clip");
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
