#include "engine/batch_reader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "configs.h"
#include "plan/context.h"
#include "plan/lengths.h"

namespace gptbench {
namespace {

// Token t of sequence s is 100 s + t.
class NumberedTokens final : public TokenSource {
 public:
  explicit NumberedTokens(int64_t T) : T_(T) {}
  std::string description() const override { return "numbers"; }
  void read(int64_t sequence, int32_t* tokens) const override {
    if (sequence == refused) throw Error(Exit::io, "refused");
    reads.push_back(sequence);
    for (int64_t t = 0; t <= T_; ++t) tokens[t] = static_cast<int32_t>(100 * sequence + t);
  }
  mutable std::vector<int64_t> reads;
  int64_t refused = -1;

 private:
  int64_t T_;
};

struct Reading {
  explicit Reading(const SmallModel& model, int64_t rank = 0)
      : plan(make_plan(resolved_config(model), model.ranks(), rank)) {}
  Plan plan;
  NumberedTokens tokens{plan.shape.T};
  BatchReader reader{plan, tokens};
};

}  // namespace

TEST(BatchReader, FindsWhatWasDrawnAhead) {
  Reading reading{SmallModel{}};
  BatchReader& reader = reading.reader;
  reader.set_position(3, 70);
  EXPECT_EQ(reader.sequences_before(3), 70);
  EXPECT_EQ(reader.sequences_before(4), 75);
  reading.tokens.refused = 73;  // what is behind it is left to its step as well
  reader.draw_ahead(3);
  const std::vector<int64_t> drawn = {70, 71, 72};
  EXPECT_EQ(reading.tokens.reads, drawn);

  reader.begin_batch(70);
  EXPECT_EQ(reader.num_targets(), 5 * reading.plan.shape.T);
  reader.read({1, 2}, {});
  EXPECT_EQ(reading.tokens.reads, drawn);
  const size_t T = static_cast<size_t>(reading.plan.shape.T);
  for (const size_t b : {0, 1})
    for (size_t t = 0; t < T; ++t) {
      const int32_t token = static_cast<int32_t>(100 * (71 + b) + t);
      EXPECT_EQ(reader.micro_batch().inputs[b * T + t], token);
      EXPECT_EQ(reader.micro_batch().targets[b * T + t], token + 1);
    }
}

// A thousand ranks of stages that need no tokens must not read the file of tokens.
TEST(BatchReader, DrawsAheadWhereAStageReadsTokens) {
  SmallModel model;
  model.layers = model.pipeline_parallel = 3;
  for (const int64_t stage : {0, 1, 2}) {
    Reading reading(model, stage);
    const auto loads = [](const Op& op) { return op.kind == OpKind::load_tokens; };
    const bool needs = std::any_of(reading.plan.ops.begin(), reading.plan.ops.end(), loads);
    EXPECT_EQ(needs, stage != 1);
    reading.reader.draw_ahead(0);
    EXPECT_EQ(reading.tokens.reads.empty(), !needs) << "stage " << stage;
  }
}

// The count takes the time of a batch's random numbers, within the timed step. It shows by a change
// of the plan that none was drawn again.
TEST(BatchReader, CountsTheTargetsOfABatchOnce) {
  SmallModel model;
  model.family = "bert";
  model.seq = 32;
  model.global_batch = 64;
  model.short_seq_prob = 0.5;
  Reading reading(model);
  reading.reader.begin_batch(0);
  const int64_t counted = reading.reader.num_targets();
  EXPECT_EQ(counted, targets_of_batch(reading.plan, 0));
  reading.plan.config.data.short_seq_prob = 0.75;
  ASSERT_NE(targets_of_batch(reading.plan, 0), counted);
  reading.reader.begin_batch(0);
  EXPECT_EQ(reading.reader.num_targets(), counted);
  reading.reader.begin_batch(64);
  EXPECT_EQ(reading.reader.num_targets(), targets_of_batch(reading.plan, 64));
}

TEST(BatchReader, KeepsStaleTokensWhereNoneCanBeRead) {
  Reading reading{SmallModel{}};
  reading.reader.begin_batch(0);
  reading.reader.read({0, 2}, {});
  const std::vector<int32_t> inputs = reading.reader.micro_batch().inputs;
  reading.tokens.refused = 2;
  EXPECT_THROW(reading.reader.read({2, 2}, {}), Error);
  EXPECT_EQ(reading.reader.micro_batch().inputs, inputs);
}

// Each rank of the context axis holds two parts of a sequence (plan/context.h).
TEST(BatchReader, ReadsThePositionsOfItsRank) {
  SmallModel model;
  model.context_parallel = 2;
  for (const int64_t rank : {0, 1}) {
    Reading reading(model, rank);
    const Positions held = held_positions(reading.plan.shape.T, 2, rank);
    reading.reader.begin_batch(10);
    reading.reader.read({4, 1}, held);
    for (int64_t t = 0; t < reading.plan.T_local(); ++t)
      EXPECT_EQ(reading.reader.micro_batch().inputs[static_cast<size_t>(t)],
                1400 + position_of(held, t));
  }
}

}  // namespace gptbench
