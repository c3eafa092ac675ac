#include "base/clock.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

TEST(Clock, NeverStepsBack) {
  double previous = now_s();
  for (int i = 0; i < 1000; ++i) {
    const double now = now_s();
    ASSERT_GE(now, previous);
    previous = now;
  }
}

}  // namespace
}  // namespace gptbench
