// Training in fp8 on one rank; decompositions are compared in equivalence_test.cpp.
#include <gtest/gtest.h>

#include "train.h"

namespace gptbench {
namespace {

SmallModel model(const char* device, const char* compute) {
  SmallModel m = model_of(device, compute, 4, 8);
  m.hidden = 64;
  m.seq = 24;
  return m;
}

// Gradients in fp8 are off by at most a share r of their size, u sqrt(n) over the conversions
// between a weight and its gradient: 12 L + 1 to e4m3, u = 2^-4, and 4 L + 1 to e5m2, u = 2^-3. To
// first order so is what they change, so that losses part by at most r of what training has
// changed, and by r of the logits' spread, sqrt(C) std, averaged over the tokens (four standard
// deviations).
TEST(Fp8Training, FollowsBf16) {
  constexpr int steps = 24;
  SmallModel m = model("host", "fp8");
  m.fp8_amax_history = 3;  // the ring of the history goes round
  const Trained fp8 = train(m, steps, nullptr);
  const Trained bf16 = train(model("host", "bf16"), steps, nullptr);
  EXPECT_TRUE(fp8.unplanned.empty());
  const double L = static_cast<double>(m.layers);
  const double r = std::sqrt((12.0 * L + 1.0) * 0x1p-8 + (4.0 * L + 1.0) * 0x1p-6);
  const double logits = std::sqrt(static_cast<double>(m.hidden)) * ModelConfig().init_std /
                        std::sqrt(static_cast<double>(m.global_batch * m.seq));
  double moved = 0.0;
  for (size_t step = 0; step < fp8.losses.size(); ++step) {
    moved = std::max(moved, std::abs(bf16.losses[step] - bf16.losses[0]));
    EXPECT_NEAR(fp8.losses[step], bf16.losses[step], r * (moved + 4.0 * logits)) << step;
  }
  EXPECT_NE(fp8.losses, bf16.losses);  // nothing was computed in bf16 instead
  EXPECT_LE(distance(fp8.grad_norms, bf16.grad_norms), r * norm(bf16.grad_norms));
}

// A margin of one bit costs nothing but the smallest numbers. One of 16 leaves e4m3, 448 times that
// of its smallest step 2^-9, no more than three steps: half of all numbers become 0. The second
// step's scales are those of the history, not of the first guess.
TEST(Fp8Training, MarginLeavesFewerBits) {
  SmallModel m = model("host", "fp8");
  const Trained none = train(m, 3, nullptr);
  m.fp8_margin = 1;
  const Trained one = train(m, 3, nullptr);
  m.fp8_margin = 16;
  const Trained most = train(m, 3, nullptr);
  EXPECT_LT(distance(one.gradients[0], none.gradients[0]), 0.1 * norm(none.gradients));
  EXPECT_GT(distance(most.gradients[0], none.gradients[0]), 0.1 * norm(none.gradients));
}

// The amax of a step is that of all its micro-batches: how many there are makes no difference.
TEST(Fp8Training, MicroBatchesShareTheirScales) {
  SmallModel m = model("ref", "fp8");
  const Trained whole = train(m, 3, nullptr);
  m.micro_batch = 3;
  const Trained parts = train(m, 3, nullptr);
  EXPECT_LT(largest_difference(parts.losses, whole.losses), 1e-12);
  for (size_t t = 0; t < whole.gradients.size(); ++t)
    EXPECT_LE(distance(parts.gradients[t], whole.gradients[t]), 1e-12 * norm(whole.gradients))
        << whole.tensors[t];
}

// The plan of a GPU, whose products take W, x and dy transposed, with the kernels of the host: sums
// in another order, of the same factors. They round to other numbers of bf16 now and then, at most
// as often as all of them do in bf16: u sqrt(16 L + 6), u = 2^-8 (equivalence_test.cpp).
TEST(Fp8Training, TransposedFactorsAreTheSame) {
  for (const int64_t seq : {24, 32}) {  // the activation is turned afterwards, and as it is made
    SCOPED_TRACE(seq);
    SmallModel m = model("host", "fp8");
    m.seq = seq;
    const Trained host = train(m, 2, nullptr);
    m.device = "cuda";
    const Trained gpu = train(m, 2, nullptr);
    const double bound = 0x1p-8 * std::sqrt(16.0 * 2.0 + 6.0);
    EXPECT_LT(largest_difference(gpu.losses, host.losses), bound);
    for (size_t t = 0; t < host.gradients.size(); ++t)
      EXPECT_LE(distance(gpu.gradients[t], host.gradients[t]), bound * norm(host.gradients))
          << host.tensors[t];
  }
}

// What is recomputed is converted to the same bytes.
TEST(Fp8Training, RecomputationChangesNothing) {
  SmallModel m = model("host", "fp8");
  m.data_parallel = 1;
  const Trained kept = train_decomposed(m, 2, nullptr);
  MpiWorld world(nullptr, nullptr);
  for (const char* recompute : {"selective", "full"}) {
    m.recompute = recompute;
    const Trained again = train_decomposed(m, 2, &world);
    EXPECT_EQ(again.losses, kept.losses) << recompute;
    EXPECT_EQ(again.gradients, kept.gradients) << recompute;
  }
}

}  // namespace
}  // namespace gptbench
