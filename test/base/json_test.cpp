#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gptbench {
namespace {

TEST(Json, TextIsEscaped) {
  EXPECT_EQ(json("a \"b\" \\ /"), R"("a \"b\" \\ /")");
  EXPECT_EQ(json(std::string_view("\n\t\0\x1f\x7f", 5)), R"("\u000a\u0009\u0000\u001f\u007f")");
  // Letters stay; a control character of two bytes does not; bytes that are no UTF-8 are replaced.
  EXPECT_EQ(json("\xc3\xa9\xc2\x9b"), "\"\xc3\xa9\\u009b\"");
  EXPECT_EQ(json("\xff\xc3"), R"("\ufffd\ufffd")");
}

TEST(Json, NumbersAreReadBackAsTheyWere) {
  EXPECT_EQ(json(0.1), "0.1");
  EXPECT_EQ(json(32.0), "32");
  EXPECT_EQ(json(-1e-300), "-1e-300");
  for (const double value : {1.0 / 3.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308})
    EXPECT_EQ(std::strtod(json(value).c_str(), nullptr), value);
  EXPECT_EQ(json(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(json(true), "true");
}

TEST(Json, WhatIsNoNumberIsNull) {
  EXPECT_EQ(json(std::vector<double>{NAN, INFINITY, -INFINITY, 1.5}), "[null, null, null, 1.5]");
}

TEST(Json, ObjectsKeepTheOrderOfTheirMembers) {
  EXPECT_EQ(JsonObject().text(), "{}");
  EXPECT_EQ(JsonObject().add("b", int64_t{1}).add("a\"", "x").add_json("c", "[]").text(),
            R"({"b": 1, "a\"": "x", "c": []})");
}

}  // namespace
}  // namespace gptbench
