#include "post/field.h"

#include <gtest/gtest.h>

#include <cmath>

#include "made_record.h"

namespace gptbench {
namespace {

TEST(Fields, KeysAttributesAndAbsentOnes) {
  const Record r = made_record();
  EXPECT_EQ(field_of(r, "batch.global_batch_size"), Field(8.0));
  EXPECT_EQ(field_of(r, "model.preset"), Field(std::string("gpt2-124m")));
  EXPECT_EQ(field_of(r, "run.deterministic"), Field(1.0));
  EXPECT_EQ(field_of(r, "tokens_per_s"), Field(256.0));
  EXPECT_EQ(field_of(r, "power_w"), Field(65.5));
  EXPECT_EQ(field_of(r, "status"), Field(std::string("OK")));
  EXPECT_FALSE(field_of(r, "batch.size"));
  EXPECT_FALSE(field_of(Record{}, "power_w"));
}

TEST(Fields, EqualAsNumbersOrText) {
  EXPECT_TRUE(field_equals(8.0, "8"));
  EXPECT_TRUE(field_equals(8.0, "8.0"));
  EXPECT_FALSE(field_equals(8.0, "8 "));
  EXPECT_FALSE(field_equals(0.0, ""));
  EXPECT_TRUE(field_equals(1.0, ".TRUE."));
  EXPECT_TRUE(field_equals(0.0, "F"));
  EXPECT_TRUE(field_equals(std::string("8"), "8"));
  EXPECT_FALSE(field_equals(std::string("8"), "8.0"));
}

TEST(Fields, OrderOfNumbersIsNotThatOfText) {
  EXPECT_TRUE(field_less(9.0, 10.0));
  EXPECT_TRUE(field_less(10.0, std::string("1")));
  // Numbers of diverged runs have a place, too: sorting needs an order.
  const double nan = std::nan("");
  EXPECT_TRUE(field_less(nan, -1.0));
  EXPECT_FALSE(field_less(-1.0, nan));
  EXPECT_FALSE(field_less(nan, nan));
}

}  // namespace
}  // namespace gptbench
