#include "base/choice.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

GPTBENCH_CHOICE(Order, auto_, gpipe, _1f1b, zero_bubble)
using Orders = std::vector<Order>;

TEST(Choice, NamesAreTheEnumeratorsWithoutUnderscoresAtTheEnds) {
  EXPECT_EQ(names_of(Order{}), (std::vector<std::string>{"auto", "gpipe", "1f1b", "zero_bubble"}));
  EXPECT_EQ(name_of(Order::_1f1b), "1f1b");
  EXPECT_EQ(choice_of<Order>("zero_bubble"), Order::zero_bubble);
  EXPECT_DEATH(choice_of<Order>("1f1c"), "no choice is named 1f1c");
}

TEST(Choice, ListsContainTheirValues) {
  EXPECT_TRUE(contains(Orders{Order::gpipe}, Order::gpipe));
  EXPECT_FALSE(contains(Orders{Order::gpipe}, Order::auto_));
}

}  // namespace
}  // namespace gptbench
