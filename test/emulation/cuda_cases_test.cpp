// Cases of the CUDA kernels that the host's do not have: routes by size, alignment and scratch
// memory, each against the reference.
#include <cmath>
#include <limits>

#include "kernel_test.h"

namespace gptbench::test {
namespace {

// One size that is not aligned; the least of each layout of rows in registers
// (cuda/kernels/norm.cuh), the most of some, and one beyond them all.
constexpr int64_t widths[] = {77,   64,   264,  520,  768,   776,  1032,
                              2056, 4096, 4104, 8200, 12288, 16392};

}  // namespace

// Also without scratch memory, where the sums over rows are made another way: then dx has the same
// bits. Bounds as in layernorm_test.cpp.
TYPED_TEST(HostKernel, NormalizationOfEveryWidth) {
  using A = TypeParam;
  const KernelTable &tested = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  for (const int64_t C : widths) {
    const int64_t R = C <= 1000 ? 70 : 9;
    SCOPED_TRACE(testing::Message() << R << " x " << C);
    const auto x = random_array<A>(R * C, 1), dy = random_array<A>(R * C, 2),
               before = random_array<A>(R * C, 3);
    const auto gamma = random_array<A>(C, 4);
    const auto dgamma = random_array<float>(C, 5), dbeta = random_array<float>(C, 6);
    std::vector<float> mean(static_cast<size_t>(R)), rstd(mean), mean_ref(mean), rstd_ref(mean);
    for (const bool rms : {false, true}) {
      SCOPED_TRACE(rms ? "RMSNorm" : "LayerNorm");
      std::vector<A> y(x.size()), y_ref(y);
      if (rms) {
        tested.rmsnorm_forward(*this->queue,
                               {y.data(), rstd.data(), x.data(), gamma.data(), R, C, 1e-5});
        ref.rmsnorm_forward(*this->queue,
                            {y_ref.data(), rstd_ref.data(), x.data(), gamma.data(), R, C, 1e-5});
      } else {
        tested.layernorm_forward(*this->queue, {y.data(), mean.data(), rstd.data(), x.data(),
                                                gamma.data(), nullptr, R, C, 1e-5});
        ref.layernorm_forward(*this->queue, {y_ref.data(), mean_ref.data(), rstd_ref.data(),
                                             x.data(), gamma.data(), nullptr, R, C, 1e-5});
      }
      const double sum_error = static_cast<double>(C + 8) * eps32;
      const double largest = max_abs(x);
      const double n = 2.0 * max_abs(rstd_ref) * largest;
      expect_close(rstd, rstd_ref, 0.0, 2.0 * sum_error * (1.0 + largest), "rstd");
      expect_close(y, y_ref, 4.0 * sum_error * (1.0 + largest) * (1.0 + n) * max_abs(gamma),
                   ulp_of<A>(), "y");

      auto dx_ref = before;
      auto dgamma_ref = dgamma, dbeta_ref = dbeta;
      std::vector<float> dx_sums(static_cast<size_t>(C)), dx_sums_ref(dx_sums);
      const auto backward = [&](const KernelTable& kernels, std::vector<A>& dx,
                                std::vector<float>& dg, std::vector<float>& db, Workspace ws,
                                std::vector<float>* sums) {
        if (rms)
          kernels.rmsnorm_backward(*this->queue, {dx.data(), dg.data(), dy.data(), x.data(),
                                                  gamma.data(), rstd_ref.data(), R, C, ws});
        else
          kernels.layernorm_backward(
              *this->queue,
              {dx.data(), dg.data(), db.data(), dy.data(), x.data(), gamma.data(), mean_ref.data(),
               rstd_ref.data(), R, C, ws, sums != nullptr ? sums->data() : nullptr});
      };
      backward(ref, dx_ref, dgamma_ref, dbeta_ref, {}, nullptr);
      std::vector<A> dx_without;
      for (const int64_t bytes : {int64_t{0}, 3 * 2 * C * 4, int64_t{4} << 20}) {
        auto dx = before;
        auto dg = dgamma, db = dbeta;
        backward(tested, dx, dg, db, this->workspace(bytes), nullptr);
        const double g = max_abs(dy) * max_abs(gamma);
        expect_close(dx, dx_ref,
                     4.0 * sum_error * max_abs(rstd_ref) * g * (1.0 + n * n) + ulp_of<A>(),
                     ulp_of<A>(), "dx");
        const double rows_error = static_cast<double>(R + 8) * eps32 * static_cast<double>(R + 1);
        expect_close(dg, dgamma_ref, rows_error * (1.0 + max_abs(dy) * n), eps32, "dgamma");
        expect_close(db, dbeta_ref, rows_error * (1.0 + max_abs(dy)), eps32, "dbeta");
        if (bytes == 0)
          dx_without = dx;
        else
          expect_same_bits(dx, dx_without, "dx");
        if (rms) continue;
        // The same with sums of what was stored.
        auto dx_summed = before;
        dx_sums.assign(dx_sums.size(), 0.5f);
        dx_sums_ref = dx_sums;
        dg = dgamma, db = dbeta;
        backward(tested, dx_summed, dg, db, this->workspace(bytes), &dx_sums);
        expect_same_bits(dx_summed, dx, "dx beside sums of it");
        expect_close(dg, dgamma_ref, rows_error * (1.0 + max_abs(dy) * n), eps32, "dgamma");
        expect_close(db, dbeta_ref, rows_error * (1.0 + max_abs(dy)), eps32, "dbeta");
        ref.bias_backward(*this->queue, {dx_sums_ref.data(), dx.data(), R, C});
        expect_close(dx_sums, dx_sums_ref, rows_error * (1.0 + max_abs(dx)), eps32, "dx_sums");
      }
    }
  }
}

// Sums of R terms in float; chunks of rows where there is scratch memory, one sum where not. 2,200
// rows are more chunks than a block that adds them up has warps.
TYPED_TEST(HostKernel, BiasGradientWithAndWithoutWorkspace) {
  using A = TypeParam;
  for (const int64_t N : {1, 8, 77, 264, 768})
    for (const int64_t R : {0, 1, 130, N == 8 ? 2200 : 700})
      for (const int64_t bytes : {int64_t{0}, 5 * N * 4, int64_t{1} << 20}) {
        SCOPED_TRACE(testing::Message() << R << " x " << N << ", " << bytes << " bytes");
        const auto dy = random_array<A>(R * N, 1);
        auto dbias = random_array<float>(N, 2);
        auto dbias_ref = dbias;
        this->template host_kernels<A>().bias_backward(
            *this->queue, {dbias.data(), dy.data(), R, N, this->workspace(bytes)});
        this->template ref_kernels<A>().bias_backward(*this->queue,
                                                      {dbias_ref.data(), dy.data(), R, N});
        const double terms = static_cast<double>(R + 2);
        expect_close(dbias, dbias_ref, terms * eps32 * terms * (1.0 + max_abs(dy)), eps32, "dbias");
      }
}

// Scratch memory for two blocks at a time; the sum does not depend on how many fit beyond the order
// of sums of doubles.
TYPED_TEST(HostKernel, SquaredNormWithLittleWorkspace) {
  using A = TypeParam;
  const auto g = random_array<A>(5 * 4096 + 77, 1);
  const int64_t n = static_cast<int64_t>(g.size());
  double reference = 2.0;
  const DType type = activation_type(compute_of<A>());
  this->template ref_kernels<A>().squared_norm(*this->queue, {&reference, g.data(), n, type});
  for (const int64_t bytes : {0, 16, 4096})
    for (const int64_t skipped : {0, 1}) {  // an unaligned shard
      double sum = 2.0;
      if (skipped == 1) sum += value_of(g[0]) * value_of(g[0]);
      this->template host_kernels<A>().squared_norm(
          *this->queue, {&sum, g.data() + skipped, n - skipped, type, this->workspace(bytes)});
      EXPECT_NEAR(sum, reference, static_cast<double>(n) * 0x1p-53 * reference) << bytes;
    }
}

// Scratch memory for all blocks of elements, which are more than the emulation's blocks of threads
// (24).
TYPED_TEST(HostKernel, SquaredNormOfManyBlocksAtATime) {
  using A = TypeParam;
  const auto g = random_array<A>(25 * 4096 + 77, 1);
  const int64_t n = static_cast<int64_t>(g.size());
  const DType type = activation_type(compute_of<A>());
  double sum = 2.0, reference = 2.0;
  this->template ref_kernels<A>().squared_norm(*this->queue, {&reference, g.data(), n, type});
  this->template host_kernels<A>().squared_norm(*this->queue,
                                                {&sum, g.data(), n, type, this->workspace(4096)});
  EXPECT_NEAR(sum, reference, static_cast<double>(n) * 0x1p-53 * reference);
}

// Arrays that start anywhere, so that no access may be wider than an element; and ones that reach a
// multiple of 16 bytes together, after a few elements.
TYPED_TEST(HostKernel, UnalignedElementwise) {
  using A = TypeParam;
  const int64_t n = 1000;
  const auto x = random_array<A>(n + 8, 1), dy = random_array<A>(n + 8, 2);
  for (const int64_t at_x : {0, 1, 3})
    for (const int64_t at_dy : {0, 3}) {
      std::vector<A> dx(x.size()), dx_ref(x.size());
      this->template host_kernels<A>().gelu_backward(
          *this->queue, {dx.data() + at_x, dy.data() + at_dy, x.data() + at_x, n});
      this->template ref_kernels<A>().gelu_backward(
          *this->queue, {dx_ref.data() + at_x, dy.data() + at_dy, x.data() + at_x, n});
      expect_close(dx, dx_ref, 128 * eps32 * 4 * (1.0 + max_abs(dy)), ulp_of<A>(), "dgelu");
    }
}

// More rows than one launch of the token gradient takes, and one token in most of them: the sum of
// each element has the order of the rows, hence the reference's bits.
TYPED_TEST(HostKernel, EmbeddingGradientOfARepeatedToken) {
  using A = TypeParam;
  const int64_t R = 8200, C = 8, V = 40;
  auto tokens = random_tokens(R, 1, V);
  for (size_t r = 0; r < tokens.size(); ++r)
    if (r % 3 != 0) tokens[r] = 7;
  const auto dy = random_array<A>(R * C, 2);
  auto dtable = random_array<float>(V * C, 3);
  auto dtable_ref = dtable;
  this->template host_kernels<A>().embedding_backward(
      *this->queue, {dtable.data(), nullptr, dy.data(), tokens.data(), R, R, C, 0, V});
  this->template ref_kernels<A>().embedding_backward(
      *this->queue, {dtable_ref.data(), nullptr, dy.data(), tokens.data(), R, R, C, 0, V});
  expect_same_bits(dtable, dtable_ref, "dtoken_table");
}

// Statistics of three ranks, with room between their arrays; one holds no token of the vocabulary.
// Rows are more than the emulation's threads (3,072). Sums of three terms, each with the
// exponential's 2 ulp and the rounding of an argument below 16; smaller terms vanish beside the
// sum.
TYPED_TEST(HostKernel, CrossEntropyCombineEqualsReference) {
  using A = TypeParam;
  const int64_t R = 3100, array = R + 4, part = 3 * array, parts = 3;
  std::vector<float> of_ranks = random_array<float>(parts * part, 1, 3.0);
  for (int64_t p = 0; p < parts; ++p)
    for (int64_t r = 0; r < R; ++r) {
      float* const at = of_ranks.data() + p * part + r;
      at[array] = p == 1 ? 0.0f : 1.0f + std::abs(at[array]);
      if (p == 1) at[0] = -std::numeric_limits<float>::infinity();
    }
  std::vector<float> max(static_cast<size_t>(R)), sum(max), target(max), max_ref(max), sum_ref(max),
      target_ref(max);
  this->template host_kernels<A>().cross_entropy_combine(
      *this->queue,
      {max.data(), sum.data(), target.data(), of_ranks.data(), R, parts, array, part});
  this->template ref_kernels<A>().cross_entropy_combine(
      *this->queue,
      {max_ref.data(), sum_ref.data(), target_ref.data(), of_ranks.data(), R, parts, array, part});
  expect_same_bits(max, max_ref, "row_max");
  expect_close(sum, sum_ref, 0.0, (3 + 16 + 4) * eps32, "row_sum");
  expect_close(target, target_ref, 3 * eps32 * 3 * 12.0, 0.0, "target_logit");
}

TYPED_TEST(HostKernel, ScalarsAreSummedInOrder) {
  using A = TypeParam;
  const double x[] = {1e16, 1.0, -1e16, 3.0};
  double sum = 0.0;
  this->template host_kernels<A>().sum_scalars(*this->queue, {&sum, x, 4});
  EXPECT_EQ(sum, ((1e16 + 1.0) - 1e16) + 3.0);
}

// Masks follow the seed that lies in memory when a kernel runs, not the one it was told.
TYPED_TEST(HostKernel, DropoutTakesItsSeedFromMemory) {
  using A = TypeParam;
  const KernelTable& kernels = this->template host_kernels<A>();
  const int64_t R = 20;
  for (const int64_t C : {33, 64}) {
    const auto x = random_array<A>(R * C, 1);
    const GlobalRows rows;
    std::vector<A> told(x.size()), found(x.size());
    uint64_t seed = 0;
    for (const uint64_t step : {uint64_t{5}, uint64_t{1} << 40}) {
      seed = step;
      kernels.residual_forward(*this->queue,
                               {told.data(), x.data(), x.data(), R, C, {0.3, step, 2}, rows});
      kernels.residual_forward(*this->queue,
                               {found.data(), x.data(), x.data(), R, C, {0.3, 1, 2, &seed}, rows});
      expect_same_bits(found, told, "y");
      kernels.dropout_backward(*this->queue, {told.data(), x.data(), R, C, {0.3, step, 2}, rows});
      kernels.dropout_backward(*this->queue,
                               {found.data(), x.data(), R, C, {0.3, 1, 2, &seed}, rows});
      expect_same_bits(found, told, "dx");
    }
  }
}

// Corrections that lie in memory count in place of the step's.
TYPED_TEST(HostKernel, AdamWTakesCorrectionsFromMemory) {
  using A = TypeParam;
  const int64_t n = 1001, t = 7;
  const auto g = random_array<float>(n, 1);
  const double factor = 0.5, lr = 1e-2, beta1 = 0.9, beta2 = 0.95, weight_decay = 0.1;
  const float corrections[] = {static_cast<float>(lr / (1.0 - std::pow(beta1, t))),
                               static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, t))),
                               static_cast<float>(lr * weight_decay)};
  for (const bool decays : {false, true}) {
    std::vector<float> p[2], m[2], v[2];
    for (int i = 0; i < 2; ++i) {
      p[i] = random_array<float>(n, 2);
      m[i] = random_array<float>(n, 3);
      v[i] = random_array<float>(n, 4);
      for (float& x : v[i]) x *= x;
      AdamW a{p[i].data(),
              m[i].data(),
              v[i].data(),
              g.data(),
              nullptr,
              &factor,
              n,
              t,
              lr,
              beta1,
              beta2,
              1e-8,
              decays ? weight_decay : 0.0,
              DType::f32,
              DType::f32,
              DType::f32};
      if (i == 1) {
        a.t = 1;
        a.lr = 0.0;
        a.corrections = corrections;
      }
      this->template host_kernels<A>().adamw(*this->queue, a);
    }
    expect_same_bits(p[1], p[0], "p");
    expect_same_bits(m[1], m[0], "m");
    expect_same_bits(v[1], v[0], "v");
  }
}

}  // namespace gptbench::test
