// What ranks selected by autotuning, as all of them reuse it.
#include "run/device_setup.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

// Stages of a pipeline have different GEMMs, replicas the same ones with times of their own.
TEST(Selections, OfTheLowestRankCount) {
  EXPECT_EQ(merge_selections({"", "gemm_library=a\ngemm.x=1 us\ngemm.y=2 us\n",
                              "gemm_library=a\ngemm.x=3 us\ngemm.z=4 us\n", "gemm.y=5 us\n"}),
            "gemm_library=a\ngemm.x=1 us\ngemm.y=2 us\ngemm.z=4 us\n");
  EXPECT_EQ(merge_selections({}), "");
}

TEST(Selections, DoNotGrowWithTheNumberOfRanks) {
  const std::string text = "gemm_library=a\ngemm.x=0 us 12.5, workspace=0\nattention=native\n";
  EXPECT_EQ(merge_selections(std::vector<std::string>(12288, text)), text);
}

}  // namespace
}  // namespace gptbench
