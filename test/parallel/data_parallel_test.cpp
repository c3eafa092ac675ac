// A model trained on any number of ranks is the model trained on one.
#include <gtest/gtest.h>

#include "train.h"

namespace gptbench {
namespace {

constexpr int steps = 5;

struct Batch {
  int64_t micro, global;
};

// Batches that divide and batches that do not, some with an empty last micro-batch: 7 by 2 is
// 2 + 1, 2 + 0, 2 + 0 on 3 ranks; 7 by 1 is 1 + 1, 1 + 1, 1 + 1, 1 + 0 on 4.
std::vector<Batch> batches_for(int64_t ranks) {
  std::vector<Batch> fit;
  for (const Batch& batch : {Batch{1, 4}, Batch{1, 7}, Batch{2, 7}, Batch{3, 7}, Batch{2, 9}})
    if (batch.micro * ranks <= batch.global) fit.push_back(batch);
  return fit;
}

std::string name_of(const Batch& batch, int64_t ranks) {
  return std::to_string(batch.global) + " sequences by " + std::to_string(batch.micro) + " on " +
         std::to_string(ranks) + " ranks";
}

// In double precision orders of summation differ by a few units of 2^-53 a step; five steps of
// AdamW (learning rate 6e-4) do not amplify them to 1e-12.
TEST(DataParallel, LossesInDoublePrecision) {
  MpiWorld world(nullptr, nullptr);
  for (const Batch& batch : batches_for(world.size())) {
    const SmallModel model = model_of("ref", "fp64", batch.micro, batch.global);
    const Trained all = train(model, steps, &world);
    if (world.rank() != 0) continue;  // loss and gradients are global: one rank compares
    const Trained one = train(model, steps, nullptr);
    EXPECT_LT(largest_difference(all.losses, one.losses), 1e-12) << name_of(batch, world.size());
    EXPECT_LT(largest_difference(all.grad_norms, one.grad_norms), 1e-12)
        << name_of(batch, world.size());
    for (size_t t = 0; t < one.gradients.size(); ++t)
      EXPECT_LE(distance(all.gradients[t], one.gradients[t]), 1e-12 * norm(one.gradients))
          << one.tensors[t];
  }
}

// Against double precision on one rank: a layout's error in each gradient stays within three times
// that of one single-precision rank, and 1e-6 of the whole gradient's norm (16 units of 2^-24)
// where that happens to be small.
void gradients_are_as_good_as_on_one_rank(const char* device) {
  MpiWorld world(nullptr, nullptr);
  for (const Batch& batch : batches_for(world.size())) {
    const SmallModel model = model_of(device, "fp32", batch.micro, batch.global);
    const Trained all = train(model, steps, &world);
    if (world.rank() != 0) continue;  // loss and gradients are global: one rank compares
    const Trained one = train(model, steps, nullptr);
    const Trained exact = train(model_of("ref", "fp64", batch.micro, batch.global), 1, nullptr);
    EXPECT_LT(largest_difference(all.losses, one.losses), 1e-5) << name_of(batch, world.size());
    for (size_t t = 0; t < exact.gradients.size(); ++t)
      EXPECT_LE(distance(all.gradients[t], exact.gradients[t]),
                3.0 * distance(one.gradients[t], exact.gradients[t]) + 1e-6 * norm(exact.gradients))
          << exact.tensors[t] << ", " << name_of(batch, world.size());
  }
}

TEST(DataParallel, SinglePrecisionReference) {
  gradients_are_as_good_as_on_one_rank("ref");
}

TEST(DataParallel, SinglePrecisionHost) {
  gradients_are_as_good_as_on_one_rank("host");
}

// Stored activations round to 8 bits, u = 2^-8, about 16 L + 6 = 38 times between a weight and its
// gradient; independent errors add to u sqrt(38) = 0.024 of the whole gradient. Loss is a mean over
// tokens and far better; the same bound serves.
TEST(DataParallel, Bf16Host) {
  MpiWorld world(nullptr, nullptr);
  const double bound = 0x1p-8 * std::sqrt(38.0);
  for (const Batch& batch : batches_for(world.size())) {
    const SmallModel model = model_of("host", "bf16", batch.micro, batch.global);
    const Trained all = train(model, steps, &world);
    if (world.rank() != 0) continue;
    const Trained exact = train(model_of("ref", "fp64", batch.micro, batch.global), steps, nullptr);
    EXPECT_LT(largest_difference(all.losses, exact.losses), bound) << name_of(batch, world.size());
    for (size_t t = 0; t < exact.gradients.size(); ++t)
      EXPECT_LE(distance(all.gradients[t], exact.gradients[t]), bound * norm(exact.gradients))
          << exact.tensors[t] << ", " << name_of(batch, world.size());
  }
}

// Masks depend on the global element, not on who holds it.
TEST(DataParallel, DropoutIsTheSameOnEveryLayout) {
  MpiWorld world(nullptr, nullptr);
  for (const Batch& batch : batches_for(world.size())) {
    SmallModel model = model_of("ref", "fp64", batch.micro, batch.global);
    model.dropout = 0.2;
    const Trained all = train(model, steps, &world);
    // On the host: masks that differed would change losses by parts in a hundred.
    SmallModel host = model_of("host", "fp32", batch.micro, batch.global);
    host.dropout = 0.2;
    const Trained single = train(host, steps, &world);
    if (world.rank() != 0) continue;

    model.micro_batch = batch.global;
    const Trained one = train(model, steps, nullptr);
    EXPECT_LT(largest_difference(all.losses, one.losses), 1e-12) << name_of(batch, world.size());
    EXPECT_LT(largest_difference(single.losses, one.losses), 1e-5) << name_of(batch, world.size());
    model.dropout = 0.0;
    const Trained without = train(model, 1, nullptr);
    EXPECT_GT(std::abs(without.losses[0] - one.losses[0]), 1e-6) << "dropout changed nothing";
  }
}

TEST(DataParallel, ReplicasStayIdentical) {
  MpiWorld world(nullptr, nullptr);
  for (const char* compute : {"fp32", "bf16"}) {
    const Batch batch = batches_for(world.size()).back();
    const Trained all = train(model_of("host", compute, batch.micro, batch.global), steps, &world);
    const int64_t mine = static_cast<int64_t>(all.checksum >> 1);
    EXPECT_EQ(world.min(mine), world.max(mine)) << compute;
  }
}

// Bit for bit, not to a tolerance.
TEST(DataParallel, RepeatedRunsAreIdentical) {
  MpiWorld world(nullptr, nullptr);
  for (const char* compute : {"fp32", "bf16"}) {
    for (const Batch& batch : batches_for(world.size())) {
      SmallModel model = model_of("host", compute, batch.micro, batch.global);
      model.dropout = 0.1;
      const Trained first = train(model, steps, &world);
      const Trained second = train(model, steps, &world);
      EXPECT_EQ(first.losses, second.losses) << name_of(batch, world.size());
      EXPECT_EQ(first.grad_norms, second.grad_norms) << name_of(batch, world.size());
      EXPECT_EQ(first.gradients, second.gradients) << name_of(batch, world.size());
      EXPECT_EQ(first.checksum, second.checksum) << name_of(batch, world.size());
    }
  }
}

}  // namespace
}  // namespace gptbench
