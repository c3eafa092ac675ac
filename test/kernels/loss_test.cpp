#include "kernel_test.h"

namespace gptbench::test {
namespace {

struct Shape {
  int64_t R, V_tp, V_valid;
};
constexpr Shape shapes[] = {{0, 8, 8}, {1, 1, 1}, {3, 50, 47}, {5, 1037, 1025}, {2, 50304, 50257}};

// Normal numbers times 4. `rising`: each row has one logit of 100 in the middle and one of 200
// among the last of `valid`, by which exponentials relative to what came before leave the range of
// float.
template <class A>
std::vector<A> random_logits(int64_t R, int64_t V_tp, int64_t valid, bool rising) {
  auto logits = random_array<A>(R * V_tp, 2, 4.0);
  for (int64_t r = 0; r < R && rising; ++r) {
    assign(logits[static_cast<size_t>(r * V_tp + valid / 2)], 100.0);
    assign(logits[static_cast<size_t>(r * V_tp + valid - 1 - r % valid)], 200.0);
  }
  return logits;
}

// Statistics of one rank's share of the vocabulary: row_max, row_sum, target_logit, one after
// another.
template <class A>
std::vector<float> statistics_of(const KernelTable& kernels, Queue& queue,
                                 const std::vector<A>& logits, const std::vector<int32_t>& targets,
                                 int64_t V_tp, int64_t V_valid, int64_t first_token) {
  const int64_t R = static_cast<int64_t>(targets.size());
  std::vector<float> out(static_cast<size_t>(3 * R));
  float* const max = out.data();
  kernels.cross_entropy_statistics(queue, {max, max + R, max + 2 * R, logits.data(), targets.data(),
                                           R, V_tp, V_valid, first_token});
  return out;
}

}  // namespace

TYPED_TEST(HostKernel, CrossEntropyEqualsReference) {
  using A = TypeParam;
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  for (const Shape& s : shapes)
    for (const bool rising : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << s.R << " " << s.V_tp << " " << s.V_valid << (rising ? " rising" : ""));
      auto targets = random_tokens(s.R, 1, s.V_valid);
      if (s.R > 1)
        targets[1] = static_cast<int32_t>(s.V_valid - 2);  // the largest logit, if rising
      auto logits = random_logits<A>(s.R, s.V_tp, s.V_valid, rising);
      auto logits_ref = logits;
      std::vector<float> max(static_cast<size_t>(s.R)), sum(max), target(max), max_ref(max),
          sum_ref(max), target_ref(max);
      host.cross_entropy_statistics(
          *this->queue, {max.data(), sum.data(), target.data(), logits.data(), targets.data(), s.R,
                         s.V_tp, s.V_valid, 0});
      ref.cross_entropy_statistics(
          *this->queue, {max_ref.data(), sum_ref.data(), target_ref.data(), logits.data(),
                         targets.data(), s.R, s.V_tp, s.V_valid, 0});
      expect_same_bits(max, max_ref, "row_max");
      expect_same_bits(target, target_ref, "target_logit");
      // 1024 positive terms in float, each with the exponential's 3 ulp and the roundings of its
      // argument, a difference of two numbers below 32 in magnitude, and of log2 e. Larger
      // differences belong to terms that vanish beside the largest.
      const double error = (1024 + 64 + 8) * eps32;
      expect_close(sum, sum_ref, 0.0, error, "row_sum");

      double loss = 1.0, loss_ref = 1.0;  // accumulates
      double loss_scale = 512.0, loss_of_scaled = 1.0;
      const double dscale = 1.0 / 37.0;
      auto logits_scaled = logits, logits_weighted = logits, logits_weighted_ref = logits;
      host.cross_entropy_finish(
          *this->queue,
          {&loss_of_scaled, logits_scaled.data(), max_ref.data(), sum_ref.data(), target_ref.data(),
           targets.data(), s.R, s.V_tp, s.V_valid, 0, dscale / loss_scale, &loss_scale});
      host.cross_entropy_finish(
          *this->queue, {&loss, logits.data(), max_ref.data(), sum_ref.data(), target_ref.data(),
                         targets.data(), s.R, s.V_tp, s.V_valid, 0, dscale});
      ref.cross_entropy_finish(
          *this->queue, {&loss_ref, logits_ref.data(), max_ref.data(), sum_ref.data(),
                         target_ref.data(), targets.data(), s.R, s.V_tp, s.V_valid, 0, dscale});
      EXPECT_NEAR(loss, loss_ref, 1e-12 * loss_ref);
      expect_close(logits, logits_ref, 4 * eps32 * dscale, 80 * eps32 + ulp_of<A>(), "dlogits");
      EXPECT_EQ(loss_of_scaled, loss);  // the gradient's factor alone
      expect_same_bits(logits_scaled, logits, "dlogits of a scaled loss");
      // A weight of rows in memory, with and without a scale.
      const double row_weight = dscale, part = 1.0 / loss_scale;
      loss_of_scaled = 1.0;
      host.cross_entropy_finish(
          *this->queue, {&loss_of_scaled, logits_weighted.data(), max_ref.data(), sum_ref.data(),
                         target_ref.data(), targets.data(), s.R, s.V_tp, s.V_valid, 0, part,
                         &loss_scale, &row_weight});
      EXPECT_EQ(loss_of_scaled, loss);
      expect_same_bits(logits_weighted, logits, "dlogits of weighted rows");
      ref.cross_entropy_finish(
          *this->queue,
          {&loss_ref, logits_weighted_ref.data(), max_ref.data(), sum_ref.data(), target_ref.data(),
           targets.data(), s.R, s.V_tp, s.V_valid, 0, 1.0, nullptr, &row_weight});
      expect_same_bits(logits_weighted_ref, logits_ref, "dlogits of weighted rows, reference");
      for (int64_t r = 0; r < s.R; ++r)
        for (int64_t j = s.V_valid; j < s.V_tp; ++j)
          ASSERT_EQ(value_of(logits[static_cast<size_t>(r * s.V_tp + j)]), 0.0);
    }
}

TYPED_TEST(HostKernel, CrossEntropyOfIgnoredRowsEqualsReference) {
  using A = TypeParam;
  const int64_t R = 4, V = 150;
  const int32_t targets[] = {-1, 20, -100, 149};
  auto logits = random_array<A>(R * V, 2, 4.0);
  auto logits_ref = logits;
  std::vector<float> max(static_cast<size_t>(R)), sum(max), target(max);
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  host.cross_entropy_statistics(
      *this->queue, {max.data(), sum.data(), target.data(), logits.data(), targets, R, V, V, 0});
  EXPECT_EQ(target[0], 0.0f);
  double loss = 0.0, loss_ref = 0.0;
  const auto finish = [&](double& to, std::vector<A>& x) {
    return CrossEntropyFinish{&to, x.data(), max.data(), sum.data(), target.data(), targets, R,
                              V,   V,        0,          0.5};
  };
  host.cross_entropy_finish(*this->queue, finish(loss, logits));
  ref.cross_entropy_finish(*this->queue, finish(loss_ref, logits_ref));
  EXPECT_NEAR(loss, loss_ref, 1e-12 * loss_ref);
  expect_close(logits, logits_ref, 4 * eps32, 80 * eps32 + ulp_of<A>(), "dlogits");
  for (size_t j = 0; j < 150; ++j) EXPECT_EQ(value_of(logits[j]), 0.0);
}

// The loss of more rows than a block has threads (512).
TYPED_TEST(HostKernel, LossOfManyRowsEqualsReference) {
  using A = TypeParam;
  const int64_t R = 520, V = 8;
  const auto targets = random_tokens(R, 1, V);
  const auto logits = random_logits<A>(R, V, V, false);
  const KernelTable& ref = this->template ref_kernels<A>();
  auto statistics = statistics_of(ref, *this->queue, logits, targets, V, V, 0);
  float* const max = statistics.data();
  const auto loss_of = [&](const KernelTable& kernels) {
    double loss = 0.0;
    auto dlogits = logits;
    kernels.cross_entropy_finish(*this->queue, {&loss, dlogits.data(), max, max + R, max + 2 * R,
                                                targets.data(), R, V, V, 0, 1.0});
    return loss;
  };
  const double expected = loss_of(ref);
  EXPECT_NEAR(loss_of(this->template host_kernels<A>()), expected, 1e-12 * expected);
}

// One pass over the logits makes what the two make, bit by bit where sums are the same in any order
// (CUDA's f32 vectors have another length in one pass), whether a row fits into a GPU's shared
// memory or not. Of 14 rows the emulation's blocks take more than one each, one pass over them and
// two; so they do of eight in one pass, of vectors that arrive in more than one group.
TYPED_TEST(HostKernel, CrossEntropyInOnePass) {
  using A = TypeParam;
  const KernelTable& kernels = this->template host_kernels<A>();
  for (const Shape& s :
       {Shape{14, 1040, 1025}, Shape{3, 50, 47}, Shape{8, 4808, 4799}, Shape{2, 50304, 50257}}) {
    SCOPED_TRACE(testing::Message() << s.R << " " << s.V_tp << " " << s.V_valid);
    auto targets = random_tokens(s.R, 1, s.V_valid);
    targets[1] = -1;  // not part of the loss
    // Row r has r + 1 logits beside which the others vanish: its sum is the same in any order, and
    // another one than that of the other rows of its block.
    auto logits = random_logits<A>(s.R, s.V_tp, s.V_valid, true);
    for (int64_t r = 0; r < s.R; ++r)
      for (int64_t i = 0; i < r; ++i)
        assign(logits[static_cast<size_t>(r * s.V_tp + i * (s.V_valid / s.R))], 200.0);
    auto in_one = logits;
    auto statistics = statistics_of(kernels, *this->queue, logits, targets, s.V_tp, s.V_valid, 0);
    std::vector<float> made(statistics.size());
    double loss = 1.0, loss_in_one = 1.0;
    const auto finish = [&](double* sum, std::vector<A>& x, float* max) {
      return CrossEntropyFinish{sum, x.data(), max,       max + s.R, max + 2 * s.R, targets.data(),
                                s.R, s.V_tp,   s.V_valid, 0,         0.25};
    };
    kernels.cross_entropy_finish(*this->queue, finish(&loss, logits, statistics.data()));
    float* const max = made.data();
    kernels.cross_entropy(*this->queue, {{max, max + s.R, max + 2 * s.R, in_one.data(),
                                          targets.data(), s.R, s.V_tp, s.V_valid, 0},
                                         finish(&loss_in_one, in_one, max)});
    expect_same_bits(made, statistics, "statistics");
    expect_same_bits(in_one, logits, "dlogits");
    EXPECT_EQ(loss_in_one, loss);
  }
}

// A logit that is not a number makes the loss not a number, whichever it is.
TYPED_TEST(HostKernel, CrossEntropyKeepsNan) {
  using A = TypeParam;
  const int64_t V = 200;
  const int32_t targets[] = {7};
  for (const size_t at : {size_t{0}, size_t{100}, size_t{199}}) {
    auto logits = random_array<A>(V, 1);
    assign(logits[at], std::nan(""));
    float max = 0.0f, sum = 0.0f, target = 0.0f;
    double loss = 0.0;
    const KernelTable& host = this->template host_kernels<A>();
    host.cross_entropy_statistics(*this->queue,
                                  {&max, &sum, &target, logits.data(), targets, 1, V, V, 0});
    host.cross_entropy_finish(
        *this->queue, {&loss, logits.data(), &max, &sum, &target, targets, 1, V, V, 0, 1.0});
    EXPECT_TRUE(std::isnan(loss)) << at;
  }
}

// Two ranks, each with half of the vocabulary, combine to the whole, whichever has the larger
// maximum.
// The share of a tensor-parallel rank may be padding of the vocabulary alone: it adds nothing.
TYPED_TEST(HostKernel, CrossEntropyStatisticsOfPaddingAlone) {
  using A = TypeParam;
  const int64_t R = 3, V = 40;
  const auto targets = random_tokens(R, 1, V);
  const auto logits = random_logits<A>(R, V, V, false);
  for (const KernelTable* kernels :
       {&this->template host_kernels<A>(), &this->template ref_kernels<A>()}) {
    const auto padding = statistics_of(*kernels, *this->queue, logits, targets, V, 0, V);
    const auto whole = statistics_of(*kernels, *this->queue, logits, targets, V, V, 0);
    std::vector<float> parts(whole);
    parts.insert(parts.end(), padding.begin(), padding.end());
    std::vector<float> combined(static_cast<size_t>(3 * R));
    float* const max = combined.data();
    kernels->cross_entropy_combine(*this->queue,
                                   {max, max + R, max + 2 * R, parts.data(), R, 2, R, 3 * R});
    expect_same_bits(combined, whole, "combined");
  }
}

TYPED_TEST(HostKernel, CrossEntropyStatisticsOfTwoHalvesCombine) {
  using A = TypeParam;
  const int64_t R = 6, V = 3000, half = V / 2, gap = 5;
  const auto targets = random_tokens(R, 1, V);
  for (const bool rising : {false, true})
    for (const bool swapped : {false, true})
      for (const KernelTable* kernels :
           {&this->template host_kernels<A>(), &this->template ref_kernels<A>()}) {
        SCOPED_TRACE(testing::Message() << (rising ? "rising " : "") << (swapped ? "swapped" : ""));
        const auto logits = random_logits<A>(R, V, V, rising);
        const auto whole = statistics_of(*kernels, *this->queue, logits, targets, V, V, 0);
        // Parts of 3 arrays, with gaps between arrays and between parts.
        const int64_t array = R + gap, part = 3 * array + gap;
        std::vector<float> parts(static_cast<size_t>(2 * part), std::nanf(""));
        for (int64_t rank = 0; rank < 2; ++rank) {
          std::vector<A> share(static_cast<size_t>(R * half));
          for (int64_t r = 0; r < R; ++r)
            std::copy_n(logits.begin() + r * V + rank * half, half, share.begin() + r * half);
          const auto of_share =
              statistics_of(*kernels, *this->queue, share, targets, half, half, rank * half);
          for (int64_t i = 0; i < 3; ++i)
            std::copy_n(of_share.begin() + i * R, R,
                        parts.begin() + (swapped ? 1 - rank : rank) * part + i * array);
        }
        std::vector<float> combined(static_cast<size_t>(3 * R + 1), 7.0f);
        float* const max = combined.data();
        kernels->cross_entropy_combine(
            *this->queue, {max, max + R, max + 2 * R, parts.data(), R, 2, array, part});
        for (size_t r = 0; r < static_cast<size_t>(R); ++r) {
          const size_t rows = static_cast<size_t>(R);
          EXPECT_EQ(combined[r], whole[r]);
          // Sums as above, of the whole and of the halves.
          EXPECT_NEAR(combined[rows + r], whole[rows + r],
                      2 * (1024 + 64 + 8) * eps32 * value_of(whole[rows + r]));
          EXPECT_EQ(combined[2 * rows + r], whole[2 * rows + r]);
        }
        EXPECT_EQ(combined.back(), 7.0f);
      }
}

}  // namespace gptbench::test
