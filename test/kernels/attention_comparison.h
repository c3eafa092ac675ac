// Attention of a device's kernels against the reference: whole sequences, and the blocks of keys
// that context parallelism brings.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention_data.h"

namespace gptbench::test {

// Errors relative to the largest element of a result. f32: scores are sums of D terms of size about
// one, results sums of up to T (H / H_kv) terms: (D + T H / H_kv) eps32, and 8 roundings in
// between. Of 2 bytes: probabilities, their gradients and the stored output are rounded to A once
// each, half a unit in the last place, in sums that do not exceed the largest element times 2;
// inputs are the same.
template <class A>
double tolerance_of(const AttentionCase& c) {
  const double sums = static_cast<double>(c.D + c.T * (c.H / c.H_kv) + 8) * eps32;
  return sizeof(A) == sizeof(float) ? sums : sums + 3 * 2 * ulp_of<A>() / 2;
}

// Equal where one is infinite.
inline void expect_lse(const std::vector<float>& lse, const std::vector<float>& reference,
                       const AttentionCase& c) {
  double largest = 0.0;
  for (const float x : reference)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(value_of(x)));
  const double tolerance = static_cast<double>(c.D + c.T) * eps32 * (1.0 + largest);
  for (size_t i = 0; i < lse.size(); ++i) {
    if (lse[i] == reference[i]) continue;
    ASSERT_NEAR(lse[i], reference[i], tolerance) << i;
  }
}

// What is compared, and what both run on.
struct AttentionComparison {
  const KernelTable& tested;
  const KernelTable& reference;
  Queue& queue;
  Workspace workspace;
};

// Rows of `aligned` data start at multiples of 16 bytes.
template <class A>
void expect_equals_reference(const AttentionComparison& on, const AttentionCase& c,
                             bool aligned = false) {
  SCOPED_TRACE(testing::PrintToString(c));
  AttentionData<A> tested(c, aligned), ref(c, aligned);
  tested.forward(on.tested, on.queue, on.workspace);
  ref.forward(on.reference, on.queue, on.workspace);
  const double tolerance = tolerance_of<A>(c);
  expect_close(tested.out, ref.out, tolerance * max_abs(ref.out), ulp_of<A>(), "out");
  expect_lse(tested.lse, ref.lse, c);

  tested.out = ref.out;
  tested.lse = ref.lse;
  tested.backward(on.tested, on.queue, on.workspace);
  ref.backward(on.reference, on.queue, on.workspace);
  expect_close(tested.dqkv, ref.dqkv, tolerance * max_abs(ref.dqkv), ulp_of<A>(), "dqkv");
}

// Blocks of two and of three ranks, whose pieces of the sequences follow one another or are dealt
// out in zigzag.
template <class A>
void expect_blocks_equal_reference(const AttentionComparison& on, const AttentionCase& c,
                                   bool aligned = false) {
  for (const int64_t ranks : {2, 3})
    for (const bool zigzag : {false, true}) {
      SCOPED_TRACE(testing::Message() << testing::PrintToString(c) << ", " << ranks << " ranks"
                                      << (zigzag ? ", zigzag" : ""));
      AttentionData<A> whole(c, aligned);
      whole.forward(on.reference, on.queue, on.workspace);
      RingAttention<A> tested(whole, ranks, zigzag), ref(whole, ranks, zigzag);
      tested.forward(on.tested, on.queue, on.workspace);
      ref.forward(on.reference, on.queue, on.workspace);
      const double tolerance = tolerance_of<A>(c);
      expect_close(tested.out, ref.out, tolerance * max_abs(ref.out), 0.0, "out");
      expect_lse(tested.lse, ref.lse, c);
      tested.backward(on.tested, on.queue, on.workspace);
      ref.backward(on.reference, on.queue, on.workspace);
      expect_close(tested.dqkv, ref.dqkv, tolerance * max_abs(ref.dqkv), 0.0, "dqkv");
    }
}

// Scores far beyond the range of exp in float, whose result is known: keys are distinct vectors of
// +-20, and a query is one of the keys that it sees, so that its score with that key is 400 sqrt(D)
// and with any other at least 100 less. Probabilities are then one and zero: out is the value of
// that key, its dv the sum of dout over its queries, and dq and dk vanish.
template <class A>
void expect_exact_for_large_scores(const AttentionComparison& on, int64_t T, int64_t D,
                                   bool aligned = false) {
  SCOPED_TRACE(testing::Message() << "T " << T << " D " << D);
  const AttentionCase c{1, T, 1, 1, D};
  AttentionData<A> data(c, aligned);
  const auto chosen = [](int64_t i) { return i * 7919 % (i + 1); };
  const auto key = [](int64_t j, int64_t d) {
    return (j * 40503 >> d % 16 & 1) != 0 ? 20.0 : -20.0;
  };
  const auto at = [&](int64_t t, int64_t first, int64_t d) {
    return static_cast<size_t>(t * data.row + first + d);
  };
  for (int64_t t = 0; t < T; ++t)
    for (int64_t d = 0; d < D; ++d) {
      assign(data.qkv[at(t, 0, d)], key(chosen(t), d));
      assign(data.qkv[at(t, data.k_at(), d)], key(t, d));
    }
  data.forward(on.tested, on.queue, on.workspace);
  const double score = 400.0 * std::sqrt(static_cast<double>(D));
  // The score, its multiples with the scale and with log2 e, and the maximum are rounded to float;
  // a probability follows them relatively.
  const double shift = 8 * eps32 * score;
  auto expected = data.out;
  for (int64_t i = 0; i < T; ++i)
    for (int64_t d = 0; d < D; ++d)
      expected[static_cast<size_t>(i * data.out_row + d)] = data.qkv[at(chosen(i), data.v_at(), d)];
  expect_close(data.out, expected, 0.0, shift + ulp_of<A>(), "out");
  for (const auto& lse : data.lse) EXPECT_NEAR(lse, score, shift);

  data.out = expected;
  for (auto& lse : data.lse) lse = static_cast<StatisticsOf<A>>(score);
  data.backward(on.tested, on.queue, on.workspace);
  std::vector<double> dv(static_cast<size_t>(T * D)), magnitude(dv);
  double largest_dp = 0.0;
  for (int64_t i = 0; i < T; ++i) {
    double dp = 0.0;
    for (int64_t d = 0; d < D; ++d) {
      const double dout = value_of(data.dout[static_cast<size_t>(i * data.out_row + d)]);
      const size_t to = static_cast<size_t>(chosen(i) * D + d);
      dv[to] += dout;
      magnitude[to] += std::abs(dout);
      dp += std::abs(dout * value_of(data.qkv[at(chosen(i), data.v_at(), d)]));
    }
    largest_dp = std::max(largest_dp, dp);
  }
  // dP and delta are the same sum of D terms, in two orders; at most T queries add up in a key.
  const double terms = static_cast<double>(2 * D + 8);
  const double vanishes = 20.0 / std::sqrt(static_cast<double>(D)) * terms * eps32 * largest_dp;
  for (int64_t t = 0; t < T; ++t)
    for (int64_t d = 0; d < D; ++d) {
      const size_t i = static_cast<size_t>(t * D + d);
      ASSERT_LE(std::abs(value_of(data.dqkv[at(t, 0, d)])), vanishes + smallest_of<A>());
      ASSERT_LE(std::abs(value_of(data.dqkv[at(t, data.k_at(), d)])),
                static_cast<double>(T) * vanishes + smallest_of<A>());
      ASSERT_NEAR(value_of(data.dqkv[at(t, data.v_at(), d)]), dv[i],
                  2 * shift * magnitude[i] + ulp_of<A>() * std::abs(dv[i]) + smallest_of<A>());
    }
}

}  // namespace gptbench::test
