// Messages that are too large for MPI are refused before the run.
#include "run/set_up.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "configs.h"

namespace gptbench {
namespace {

// One layer of 12 C^2 + 13 C parameters, in two replicas.
SmallModel one_layer(int64_t channels, int64_t zero_stage) {
  SmallModel m;
  m.layers = 1;
  m.hidden = channels;
  m.heads = 64;
  m.data_parallel = 2;
  m.zero_stage = zero_stage;
  return m;
}

// "" where no message is refused.
std::string refusal_of(const SmallModel& m) {
  try {
    check_message_sizes(make_plan(resolved_config(m), m.ranks(), 0));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "";
}

// A layer of 16,384 channels has 3.2e9 parameters. Each of two ranks holds 1.6e9 of them, fewer
// than 2^31, but the collective has them all.
TEST(MessageSizes, OfCollectivesAreThoseOfAllRanks) {
  EXPECT_EQ(refusal_of(one_layer(13312, 3)), "");  // 2.127e9, beside 2.147e9
  EXPECT_NE(refusal_of(one_layer(16384, 3)).find("all_gather along the shard axis has 32"),
            std::string::npos)
      << refusal_of(one_layer(16384, 3));
  EXPECT_NE(refusal_of(one_layer(16384, 2)).find("reduce_scatter along the shard axis has 32"),
            std::string::npos)
      << refusal_of(one_layer(16384, 2));
}

TEST(MessageSizes, AreBoundedByTensorParallelismPiecesAndNccl) {
  SmallModel m = one_layer(16384, 2);
  m.tensor_parallel = 2;
  EXPECT_EQ(refusal_of(m), "");
  EXPECT_EQ(refusal_of(one_layer(16384, 0)), "");  // all-reduces
  m = one_layer(16384, 3);
  m.comm = "nccl";
  EXPECT_EQ(refusal_of(m), "");
}

}  // namespace
}  // namespace gptbench
