// Gradient accumulation on one rank: micro-batches that do not divide the batch.
#include <gtest/gtest.h>

#include "train.h"

namespace gptbench {
namespace {

// 48 sequences by 11 are 11, 11, 11, 11, 4; the gradient is that of all 48 at once.
TEST(Accumulation, FortyEightByElevenIsFortyEight) {
  const Trained whole = train(model_of("ref", "fp64", 48, 48), 2, nullptr);
  const Trained parts = train(model_of("ref", "fp64", 11, 48), 2, nullptr);
  // Orders of summation differ: a few units of 2^-53.
  EXPECT_LT(largest_difference(parts.losses, whole.losses), 1e-13);
  for (size_t t = 0; t < whole.gradients.size(); ++t)
    EXPECT_LE(distance(parts.gradients[t], whole.gradients[t]), 1e-13 * norm(whole.gradients))
        << whole.tensors[t];

  // In single precision as good as at once.
  const Trained host_whole = train(model_of("host", "fp32", 48, 48), 1, nullptr);
  const Trained host_parts = train(model_of("host", "fp32", 11, 48), 1, nullptr);
  for (size_t t = 0; t < whole.gradients.size(); ++t)
    EXPECT_LE(
        distance(host_parts.gradients[t], whole.gradients[t]),
        3.0 * distance(host_whole.gradients[t], whole.gradients[t]) + 1e-6 * norm(whole.gradients))
        << whole.tensors[t];
}

TEST(Accumulation, EveryMicroBatchSizeGivesTheSameLosses) {
  const Trained whole = train(model_of("ref", "fp64", 6, 6), 4, nullptr);
  for (int64_t micro = 1; micro < 6; ++micro) {
    const Trained parts = train(model_of("ref", "fp64", micro, 6), 4, nullptr);
    EXPECT_LT(largest_difference(parts.losses, whole.losses), 1e-12) << micro;
  }
}

// The head takes 1,024 rows at a time: 2,200 rows are three chunks of a micro-batch, the last 550
// rows of the batch part of one, or there is one for each sequence.
TEST(Accumulation, HeadInChunks) {
  SmallModel model = model_of("ref", "fp64", 4, 5);
  model.layers = 1;
  model.hidden = 8;
  model.seq = 550;
  const Trained whole = train(model, 1, nullptr);
  model.micro_batch = 1;
  const Trained parts = train(model, 1, nullptr);
  EXPECT_LT(largest_difference(parts.losses, whole.losses), 1e-13);
  for (size_t t = 0; t < whole.gradients.size(); ++t)
    EXPECT_LE(distance(parts.gradients[t], whole.gradients[t]), 1e-13 * norm(whole.gradients))
        << whole.tensors[t];
}

// The plan of a GPU has operations that a library fuses: run by the host's kernels, which take them
// one after the other, it gives the bits of the host's own plan.
TEST(FusedOperations, GiveTheBitsOfTheirParts) {
  for (const char* family : {"gpt", "bert", "llama"})
    for (const auto& [compute, dropout] :
         {std::pair{"fp32", 0.0}, std::pair{"bf16", 0.0}, std::pair{"bf16", 0.1}}) {
      SCOPED_TRACE(testing::Message() << family << " " << compute << ", dropout " << dropout);
      SmallModel model = model_of("host", compute, 2, 5);
      model.family = family;
      model.dropout = dropout;
      const Trained apart = train(model, 3, nullptr);
      model.device = "cuda";
      const Trained fused = train(model, 3, nullptr);
      EXPECT_EQ(apart.losses, fused.losses);
      EXPECT_EQ(apart.checksum, fused.checksum);
    }
}

}  // namespace
}  // namespace gptbench
