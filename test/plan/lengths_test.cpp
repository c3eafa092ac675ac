#include "plan/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "decompositions.h"
#include "plan/tasks.h"

namespace gptbench {
namespace {

constexpr uint64_t seed = 7;

TEST(Lengths, AreWholeWithoutPadding) {
  for (const int64_t s : {0, 1, 1000, 1 << 30})
    EXPECT_EQ(length_of_sequence(0.0, seed, 128, s), 128);
}

// Six standard deviations of counts over 20,000 sequences.
TEST(Lengths, HaveTheDistributionOfMegatron) {
  constexpr int64_t T = 24, sequences = 20000;
  for (const double p : {0.1, 0.5, 1.0}) {
    std::vector<double> count(static_cast<size_t>(T + 1));
    double sum = 0.0;
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t length = length_of_sequence(p, seed, T, s);
      ASSERT_GE(length, 5);
      ASSERT_LE(length, T);
      count[static_cast<size_t>(length)] += 1.0;
      sum += static_cast<double>(length);
    }
    for (int64_t length = 5; length <= T; ++length) {
      const double expected = p / (T - 4) + (length == T ? 1.0 - p : 0.0);
      EXPECT_NEAR(count[static_cast<size_t>(length)], sequences * expected,
                  6.0 * std::sqrt(sequences * expected * (1.0 - expected)))
          << length << " with probability " << p;
    }
    Config config;
    config.model.seq_length = T;
    config.data.short_seq_prob = p;
    // A length deviates by at most T / 2 from the middle of its range.
    EXPECT_NEAR(sum / sequences / T, 1.0 - padded_share(config), 6.0 * 0.5 / std::sqrt(sequences));
  }
}

TEST(Lengths, AreAFunctionOfSeedAndSequence) {
  int64_t same = 0;
  for (int64_t s = 0; s < 100; ++s) {
    const int64_t length = length_of_sequence(1.0, seed, 512, s);
    EXPECT_EQ(length_of_sequence(1.0, seed, 512, s), length);
    same += length == length_of_sequence(1.0, seed + 1, 512, s) ? 1 : 0;
    // Whether a sequence is short does not depend on how many are.
    const int64_t less = length_of_sequence(0.5, seed, 512, s);
    EXPECT_TRUE(less == 512 || less == length);
  }
  EXPECT_LE(same, 10);  // one in 508 is expected to be the same
}

SmallModel padded_bert() {
  SmallModel m;
  m.family = "bert";
  m.seq = 16;
  m.layers = 4;
  m.micro_batch = 2;
  m.global_batch = 7;
  m.short_seq_prob = 0.5;
  return m;
}

TEST(Lengths, SayHowManyTargetsAStepHas) {
  SmallModel m = padded_bert();
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  for (const int64_t step : {0, 3}) {
    int64_t expected = 0;
    for (int64_t s = 7 * step; s < 7 * step + 7; ++s)
      expected += masked_tokens_of(length_of_sequence(plan.config, s));
    EXPECT_EQ(targets_of_batch(plan, 7 * step), expected);
    EXPECT_LT(expected, 7 * plan.shape.targets());
  }
  m.short_seq_prob = 0.0;
  EXPECT_EQ(targets_of_batch(make_plan(resolved_config(m), 1, 0), 21), 7 * plan.shape.targets());
}

// Every stage loads them once a micro-batch, and every attention reads them; messages and FLOPs are
// those of whole sequences.
TEST(Lengths, ReachAllAttention) {
  SmallModel m = padded_bert();
  m.pipeline_parallel = 2;
  m.virtual_stages = 2;
  m.schedule = "interleaved";
  m.recompute = "full";
  SmallModel whole = m;
  whole.short_seq_prob = 0.0;
  for (int64_t rank = 0; rank < 2; ++rank) {
    const Plan plan = make_plan(resolved_config(m), 2, rank);
    const Plan other = make_plan(resolved_config(whole), 2, rank);
    const Buffer& lengths = plan.buffers.at(static_cast<size_t>(plan.buffer_index.lengths));
    EXPECT_EQ(lengths.elements, m.micro_batch);
    EXPECT_EQ(lengths.slots, rank == 0 ? 4 : 3);  // micro-batches in flight
    int64_t loads = 0, attentions = 0;
    for_each_operation(plan, [&](int32_t i, int64_t /*rows*/, int64_t times) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      if (op.kind == OpKind::load_lengths) {
        loads += times;
        EXPECT_EQ(op[Slot::lengths].buffer, plan.buffer_index.lengths);
      }
      if (op.kind != OpKind::attention_forward && op.kind != OpKind::attention_backward) return;
      attentions += times;
      EXPECT_EQ(op[Slot::lengths].buffer, plan.buffer_index.lengths);
    });
    EXPECT_EQ(loads, 4);
    EXPECT_EQ(attentions, 4 * 2 * 3);  // forward, again, backward
    EXPECT_EQ(other.buffer_index.lengths, -1);
    EXPECT_EQ(plan.costs.model_flops, other.costs.model_flops);
    ASSERT_EQ(plan.costs.comm.size(), other.costs.comm.size());
    for (size_t i = 0; i < plan.costs.comm.size(); ++i)
      EXPECT_EQ(plan.costs.comm[i].bytes, other.costs.comm[i].bytes);
  }
}

}  // namespace
}  // namespace gptbench
