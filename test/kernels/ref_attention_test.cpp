// The references of attention against finite differences (ref_gradient.h), published slopes, and
// one another: keys in blocks give what all keys at once give.
#include <limits>

#include "attention_data.h"
#include "ref_gradient.h"

namespace gptbench::test {
namespace {

const AttentionCase cases[] = {
    {2, 7, 4, 2, 3},
    {2, 7, 4, 2, 3, false},
    {2, 7, 4, 2, 3, true, 0.3},
    {2, 7, 3, 1, 3, false, 0.3, true},
    {2, 7, 2, 2, 3, true, 0.0, true},
    {3, 7, 2, 1, 3, false, 0.0, false, {4, 7, 1}},
    {2, 7, 2, 1, 3, true, 0.2, true, {3, 0}},
    {1, 3, 1, 1, 150},  // wider than the reference sums at a time
};

}  // namespace

TEST_F(RefGradient, Attention) {
  for (const AttentionCase& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c));
    AttentionData<double> data(c);
    const auto loss = [&] {
      data.forward(kernels, *queue, {});
      return dot(data.out, data.dout);
    };
    loss();
    data.backward(kernels, *queue, {});
    const Vector gradient = data.dqkv;
    expect_gradient(data.qkv, gradient, loss, "qkv");
  }
}

// Scores written out for one query: the third of five positions, one head that reads the second
// key/value head.
TEST_F(RefGradient, AttentionScores) {
  AttentionCase c{1, 5, 4, 2, 2, true, 0.0, true};
  AttentionData<double> data(c);
  data.forward(kernels, *queue, {});
  const int64_t head = 3, query = 2;
  const auto at = [&](int64_t t, int64_t column) {
    return data.qkv[static_cast<size_t>(t * data.row + column)];
  };
  double sum = 0.0;
  double out = 0.0;
  for (int64_t key = 0; key <= query; ++key) {
    double score = 0.0;
    for (int64_t d = 0; d < 2; ++d)
      score += at(query, head * 2 + d) * at(key, data.k_at() + 2 + d) / std::sqrt(2.0);
    score -= alibi_slope(head + 1, 6) * static_cast<double>(query - key);  // first_head is 1
    sum += std::exp(score);
    out += std::exp(score) * at(key, data.v_at() + 2);
  }
  EXPECT_NEAR(data.lse[static_cast<size_t>(head * 5 + query)], std::log(sum), 1e-14);
  EXPECT_NEAR(data.out[static_cast<size_t>(query * data.out_row + head * 2)], out / sum, 1e-14);
}

TEST_F(RefGradient, AttentionOfAQueryWithoutKeys) {
  AttentionData<double> data({2, 3, 1, 1, 2, true, 0.0, false, {0, 3}});
  std::fill(data.out.begin(), data.out.end(), 7.0);
  data.forward(kernels, *queue, {});
  data.backward(kernels, *queue, {});
  EXPECT_EQ(data.lse[0], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(data.out[0], 0.0);
  for (size_t i = 0; i < static_cast<size_t>(3 * data.row); ++i) EXPECT_EQ(data.dqkv[i], 0.0);
  EXPECT_TRUE(std::isfinite(data.lse[3]));
}

// In blocks of keys the same sums are taken in another order: 1e-13 is 2^10 roundings of values
// below 10.
TEST_F(RefGradient, BlocksOfKeysEqualTheWhole) {
  const AttentionCase ring_cases[] = {
      {2, 12, 4, 2, 3},
      {2, 12, 2, 1, 3, false, 0.3},
      {2, 12, 3, 1, 3, true, 0.3, true},
      {3, 12, 2, 1, 3, false, 0.0, true, {5, 12, 2}},
      {2, 12, 2, 2, 3, true, 0.0, false, {7, 0}},
  };
  for (const AttentionCase& c : ring_cases)
    for (const int64_t ranks : {1, 2, 3})
      for (const bool zigzag : {false, true}) {
        SCOPED_TRACE(testing::Message() << testing::PrintToString(c) << ", " << ranks << " ranks"
                                        << (zigzag ? ", zigzag" : ""));
        AttentionData<double> whole(c);
        whole.forward(kernels, *queue, {});
        whole.backward(kernels, *queue, {});
        RingAttention<double> ring(whole, ranks, zigzag);
        ring.forward(kernels, *queue, {});
        ring.backward(kernels, *queue, {});
        for (int64_t t = 0; t < c.B * c.T; ++t) {
          for (int64_t e = 0; e < c.H * c.D; ++e) {
            const auto i = static_cast<size_t>(t * whole.out_row + e);
            ASSERT_NEAR(ring.out[i], whole.out[i], 1e-13);
          }
          for (int64_t e = 0; e < (c.H + 2 * c.H_kv) * c.D; ++e) {
            const auto i = static_cast<size_t>(t * whole.row + e);
            ASSERT_NEAR(ring.dqkv[i], whole.dqkv[i], 1e-13);
          }
        }
        for (size_t i = 0; i < ring.lse.size(); ++i) {
          if (ring.lse[i] == whole.lse[i]) continue;  // -inf, too
          ASSERT_NEAR(ring.lse[i], whole.lse[i], 1e-13);
        }
      }
}

// A rank's queries over the keys of whole sequences, which other ranks have sent.
TEST_F(RefGradient, QueriesOfARankOverAllKeys) {
  const AttentionCase c{2, 12, 2, 1, 3, true, 0.3, true};
  AttentionData<double> whole(c);
  whole.forward(kernels, *queue, {});
  RingAttention<double> ring(whole, 3, true);
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Vector q = ring.pick(whole.qkv, whole.row, rank),
                 expected = ring.pick(whole.out, whole.out_row, rank);
    AttentionShape s = ring.shape(rank, 0);
    s.T_k = c.T;
    s.kv.step = c.T * whole.row;
    s.k_positions = {};
    Vector out(expected.size()), lse(static_cast<size_t>(c.B * c.H * ring.T_local));
    kernels.attention_forward(*queue, {out.data(),
                                       lse.data(),
                                       q.data(),
                                       whole.qkv.data() + whole.k_at(),
                                       whole.qkv.data() + whole.v_at(),
                                       s,
                                       {}});
    for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-13);
  }
}

// Press et al.: 1/2, 1/4, ... 1/256 for 8 heads. MPT (llm-foundry's gen_slopes): where H is not a
// power of two, every other slope of the next one, from the second on, then the rest from the
// first.
TEST(AlibiSlope, IsThatOfThePaperAndOfMpt) {
  for (int64_t h = 0; h < 8; ++h)
    EXPECT_DOUBLE_EQ(alibi_slope(h, 8), std::exp2(-static_cast<double>(h + 1)));
  for (int64_t h = 0; h < 16; ++h)
    EXPECT_DOUBLE_EQ(alibi_slope(h, 16), std::exp2(-0.5 * static_cast<double>(h + 1)));
  const double of_12[] = {0.5,       0.25,       0.125,      0.0625,     0.03125,   0.015625,
                          0.0078125, 0.00390625, 0.70710678, 0.35355339, 0.1767767, 0.08838835};
  for (int64_t h = 0; h < 12; ++h) EXPECT_NEAR(alibi_slope(h, 12), of_12[h], 1e-8);
  for (int64_t h = 0; h < 32; ++h)
    EXPECT_DOUBLE_EQ(alibi_slope(h, 40), std::exp2(-0.25 * static_cast<double>(h + 1)));
  for (int64_t h = 32; h < 40; ++h)
    EXPECT_DOUBLE_EQ(alibi_slope(h, 40), std::exp2(-0.125 * static_cast<double>(2 * (h - 32) + 1)));
  EXPECT_EQ(alibi_slope(0, 1), std::exp2(-8.0));
}

}  // namespace gptbench::test
