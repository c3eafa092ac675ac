// Positions over the ranks of the context axis, and the attention that each step of the ring forms.
#include "plan/context.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "configs.h"
#include "plan/describe.h"

namespace gptbench {
namespace {

int64_t position(const HeldPositions& held, int64_t row) {
  return row < held.split ? held.begin[0] + row : held.begin[1] + row - held.split;
}

TEST(Context, EveryPositionIsHeldOnce) {
  for (const int64_t c : {1, 2, 3, 8}) {
    const int64_t T = 2 * c * 5;
    std::set<int64_t> seen;
    for (int64_t rank = 0; rank < c; ++rank) {
      const HeldPositions held = held_positions(T, c, rank);
      int64_t last = -1;
      for (int64_t row = 0; row < T / c; ++row) {
        const int64_t p = position(held, row);
        EXPECT_GT(p, last) << "positions ascend";
        EXPECT_LT(p, T);
        EXPECT_TRUE(seen.insert(p).second);
        last = p;
      }
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), T);
  }
}

TEST(Context, TheExampleOfTheHeader) {
  const HeldPositions first = held_positions(16, 2, 0), second = held_positions(16, 2, 1);
  EXPECT_EQ(position(first, 0), 0);
  EXPECT_EQ(position(first, 4), 12);
  EXPECT_EQ(position(second, 0), 4);
  EXPECT_EQ(position(second, 7), 11);
}

// Each query meets each key that it may see in one step, and no other where nothing is masked; all
// ranks have the same work in every step of the ring.
TEST(Context, BlocksCoverTheCausalTriangleEvenly) {
  for (const int64_t c : {2, 3, 8}) {
    const int64_t T = 2 * c * 3;
    for (int64_t rank = 0; rank < c; ++rank) {
      const HeldPositions q = held_positions(T, c, rank);
      std::set<std::pair<int64_t, int64_t>> seen;
      for (int64_t keys_of = 0; keys_of < c; ++keys_of) {
        const HeldPositions k = held_positions(T, c, keys_of);
        const AttentionBlock block = attention_block(T, c, rank, keys_of, true);
        EXPECT_EQ(block.masked, keys_of == rank);
        EXPECT_EQ(block.queries * block.keys,
                  keys_of == rank ? T / c * (T / c) : T / c * (T / c) / 2);
        for (int64_t i = block.first_query; i < block.first_query + block.queries; ++i)
          for (int64_t j = block.first_key; j < block.first_key + block.keys; ++j) {
            const bool visible = position(k, j) <= position(q, i);
            EXPECT_TRUE(visible || block.masked);
            if (visible) {
              EXPECT_TRUE(seen.insert({position(q, i), position(k, j)}).second);
            }
          }
      }
      int64_t pairs = 0;
      for (int64_t i = 0; i < T / c; ++i) pairs += position(q, i) + 1;
      EXPECT_EQ(static_cast<int64_t>(seen.size()), pairs);
    }
  }
}

TEST(Context, WithoutMaskEveryBlockIsWhole) {
  const AttentionBlock block = attention_block(24, 3, 0, 2, false);
  EXPECT_EQ(block.queries, 8);
  EXPECT_EQ(block.keys, 8);
  EXPECT_EQ(block.first_query + block.first_key, 0);
  EXPECT_FALSE(block.masked);
}

// What is counted does not depend on the ranks that a sequence is spread over, and activations fall
// with them. Beside them a rank keeps the blocks of the ring: two of keys and values, three of
// their gradients, of 2 C elements a row each.
TEST(Context, FlopsStayAndMemoryFalls) {
  SmallModel m;
  m.layers = 4;
  m.hidden = 64;
  m.seq = 1024;
  m.micro_batch = m.global_batch = 1;
  const Plan one = make_plan(resolved_config(m), 1, 0);
  for (const int64_t c : {2, 4, 16}) {
    m.context_parallel = c;
    for (const int64_t rank : {int64_t{0}, c - 1}) {
      const Plan plan = make_plan(resolved_config(m), c, rank);
      EXPECT_EQ(flops_by_convention(plan, stage_figures(plan)),
                flops_by_convention(one, stage_figures(one)));
      EXPECT_DOUBLE_EQ(plan.costs.model_flops * static_cast<double>(c), one.costs.model_flops);
      const auto bytes = [](const Plan& p, MemoryClass memory_class) {
        return p.class_bytes[static_cast<size_t>(memory_class)];
      };
      const int64_t rows = m.seq / c, ring = rows * 4 * (5 * 2 * m.hidden);
      EXPECT_EQ(bytes(plan, MemoryClass::communication) - ring, 0);
      // The gradient of the queries is summed apart; buffers are aligned.
      const int64_t held = bytes(plan, MemoryClass::activations);
      EXPECT_LE(held, bytes(one, MemoryClass::activations) / c + rows * 4 * m.hidden + 64 * 256);
    }
  }
}

}  // namespace
}  // namespace gptbench
