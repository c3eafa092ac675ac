#include "kernel_test.h"

namespace gptbench::test {
namespace {

struct Shape {
  int64_t R, C;
};
// The last two are longer than rows that are kept as floats between passes. Of rows that a GPU's
// block takes one by one, 50 are more than the emulation's blocks.
constexpr Shape shapes[] = {{0, 16},    {1, 19},    {3, 128},  {67, 77}, {70, 200},
                            {130, 768}, {50, 1040}, {3, 4098}, {2, 4101}};

}  // namespace

TYPED_TEST(HostKernel, LayerNormEqualsReference) {
  using A = TypeParam;
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.R << " x " << s.C);
    auto x = random_array<A>(s.R * s.C, 1, 3.0);
    const auto gamma = random_array<A>(s.C, 2), beta = random_array<A>(s.C, 3);
    const auto dy = random_array<A>(s.R * s.C, 4);
    const KernelTable &host = this->template host_kernels<A>(),
                      &ref = this->template ref_kernels<A>();
    const double epsilon = 1e-5;

    std::vector<A> y(x.size()), y_ref(y);
    std::vector<float> mean(static_cast<size_t>(s.R)), rstd(mean), mean_ref(mean), rstd_ref(mean);
    host.layernorm_forward(*this->queue, {y.data(), mean.data(), rstd.data(), x.data(),
                                          gamma.data(), beta.data(), s.R, s.C, epsilon});
    ref.layernorm_forward(*this->queue, {y_ref.data(), mean_ref.data(), rstd_ref.data(), x.data(),
                                         gamma.data(), beta.data(), s.R, s.C, epsilon});
    // Sums of C terms in float: relative error C eps32 at most; the mean's adds to the normalised
    // value as C eps32 max|x| rstd.
    const double sum_error = static_cast<double>(s.C + 8) * eps32;
    const double largest = max_abs(x);
    expect_close(mean, mean_ref, sum_error * largest, 0.0, "mean");
    expect_close(rstd, rstd_ref, 0.0, 2.0 * sum_error * (1.0 + largest), "rstd");
    const double normal_error =
        4.0 * sum_error * (1.0 + largest) * (1.0 + max_abs(rstd_ref) * largest);
    expect_close(y, y_ref, normal_error * (1.0 + max_abs(gamma)), ulp_of<A>(), "y");

    auto dx = random_array<A>(s.R * s.C, 5);
    auto dx_ref = dx;
    auto dgamma = random_array<float>(s.C, 6), dbeta = random_array<float>(s.C, 7);
    auto dgamma_ref = dgamma, dbeta_ref = dbeta;
    host.layernorm_backward(
        *this->queue, {dx.data(), dgamma.data(), dbeta.data(), dy.data(), x.data(), gamma.data(),
                       mean_ref.data(), rstd_ref.data(), s.R, s.C});
    ref.layernorm_backward(*this->queue,
                           {dx_ref.data(), dgamma_ref.data(), dbeta_ref.data(), dy.data(), x.data(),
                            gamma.data(), mean_ref.data(), rstd_ref.data(), s.R, s.C});
    const double g = max_abs(dy) * max_abs(gamma);
    const double n = 2.0 * max_abs(rstd_ref) * largest;
    expect_close(dx, dx_ref, 4.0 * sum_error * max_abs(rstd_ref) * g * (1.0 + n * n) + ulp_of<A>(),
                 ulp_of<A>(), "dx");
    // Sums of R terms.
    const double rows_error = static_cast<double>(s.R + 8) * eps32 * static_cast<double>(s.R + 1);
    expect_close(dgamma, dgamma_ref, rows_error * (1.0 + max_abs(dy) * n), eps32, "dgamma");
    expect_close(dbeta, dbeta_ref, rows_error * (1.0 + max_abs(dy)), eps32, "dbeta");
  }
}

TYPED_TEST(HostKernel, RmsNormEqualsReference) {
  using A = TypeParam;
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.R << " x " << s.C);
    const auto x = random_array<A>(s.R * s.C, 1, 3.0), gamma = random_array<A>(s.C, 2);
    const auto dy = random_array<A>(s.R * s.C, 4);
    const KernelTable &host = this->template host_kernels<A>(),
                      &ref = this->template ref_kernels<A>();
    std::vector<A> y(x.size()), y_ref(y);
    std::vector<float> rstd(static_cast<size_t>(s.R)), rstd_ref(rstd);
    host.rmsnorm_forward(*this->queue,
                         {y.data(), rstd.data(), x.data(), gamma.data(), s.R, s.C, 1e-5});
    ref.rmsnorm_forward(*this->queue,
                        {y_ref.data(), rstd_ref.data(), x.data(), gamma.data(), s.R, s.C, 1e-5});
    // A sum of C positive terms in float: relative error (C + 8) eps32 at most, half of it in rstd.
    const double sum_error = static_cast<double>(s.C + 8) * eps32;
    expect_close(rstd, rstd_ref, 0.0, sum_error, "rstd");
    expect_close(y, y_ref, 0.0, sum_error + ulp_of<A>(), "y");

    auto dx = random_array<A>(s.R * s.C, 5);
    auto dx_ref = dx;
    auto dgamma = random_array<float>(s.C, 6), dgamma_ref = dgamma;
    host.rmsnorm_backward(*this->queue, {dx.data(), dgamma.data(), dy.data(), x.data(),
                                         gamma.data(), rstd_ref.data(), s.R, s.C});
    ref.rmsnorm_backward(*this->queue, {dx_ref.data(), dgamma_ref.data(), dy.data(), x.data(),
                                        gamma.data(), rstd_ref.data(), s.R, s.C});
    const double g = max_abs(dy) * max_abs(gamma);
    const double n = max_abs(rstd_ref) * max_abs(x);
    // The sum of g n over C terms; dx itself is a sum of numbers of magnitude up to 8.
    expect_close(dx, dx_ref, sum_error * max_abs(rstd_ref) * g * (1.0 + n * n) + 8 * eps32,
                 ulp_of<A>(), "dx");
    const double rows_error = static_cast<double>(s.R + 8) * eps32 * static_cast<double>(s.R + 1);
    expect_close(dgamma, dgamma_ref, rows_error * (1.0 + max_abs(dy) * n), eps32, "dgamma");
  }
}

// One column equals its mean: the result is beta, and no gradient reaches x or gamma. rstd, 1 /
// sqrt of epsilon, is formed in double and rounded once.
TYPED_TEST(HostKernel, LayerNormOfOneColumn) {
  using A = TypeParam;
  const int64_t R = 5;
  const auto x = random_array<A>(R, 1, 3.0), gamma = random_array<A>(1, 2),
             beta = random_array<A>(1, 3), dy = random_array<A>(R, 4),
             before = random_array<A>(R, 5);
  for (const KernelTable* kernels :
       {&this->template host_kernels<A>(), &this->template ref_kernels<A>()}) {
    std::vector<A> y(x.size());
    std::vector<float> mean(x.size()), rstd(x.size());
    kernels->layernorm_forward(*this->queue, {y.data(), mean.data(), rstd.data(), x.data(),
                                              gamma.data(), beta.data(), R, 1, 1e-5});
    auto dx = before;
    float dgamma = 2.0f, dbeta = 3.0f;
    kernels->layernorm_backward(*this->queue, {dx.data(), &dgamma, &dbeta, dy.data(), x.data(),
                                               gamma.data(), mean.data(), rstd.data(), R, 1});
    double sum = 3.0, magnitude = 3.0;
    for (size_t r = 0; r < x.size(); ++r) {
      EXPECT_EQ(value_of(y[r]), value_of(beta[0]));
      EXPECT_EQ(value_of(mean[r]), value_of(x[r]));
      EXPECT_NEAR(rstd[r], 1.0 / std::sqrt(1e-5), 2 * eps32 / std::sqrt(1e-5));
      sum += value_of(dy[r]);
      magnitude += std::abs(value_of(dy[r]));
    }
    // dy gamma minus its mean: nothing, or what its rounding left.
    expect_close(dx, before, eps32 * max_abs(dy) * max_abs(gamma) / std::sqrt(1e-5), ulp_of<A>(),
                 "dx");
    EXPECT_EQ(dgamma, 2.0f);
    EXPECT_NEAR(dbeta, sum, (R + 1) * eps32 * magnitude);
  }
}

// A norm that forms its input: the sum is that of residual_forward, and the rest has the bits of
// the norm of the sum as it is stored. The sum takes the residual's place in some calls. 200 rows
// of 128 columns, which a GPU's block takes four at a time, are more than the emulation's blocks.
TYPED_TEST(HostKernel, NormsFormTheSumOfTheResidualStream) {
  using A = TypeParam;
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  const GlobalRows pieces{1, 3, 4, 8, {{2, 6}, 2}};
  for (const Shape& s : {Shape{0, 16}, Shape{1, 19}, Shape{12, 33}, Shape{200, 128},
                         Shape{12, 1104}, Shape{3, 8200}, Shape{2, 40000}})
    for (const double rate : {0.0, 0.3})
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(testing::Message() << s.R << " x " << s.C << ", dropout " << rate);
        const Dropout dropout{rate, 17, 4};
        const auto branch = random_array<A>(s.R * s.C, 1), residual = random_array<A>(s.R * s.C, 2);
        const auto gamma = random_array<A>(s.C, 3), beta = random_array<A>(s.C, 4);
        std::vector<A> expected(residual.size());
        ref.residual_forward(*this->queue, {expected.data(), residual.data(), branch.data(), s.R,
                                            s.C, dropout, pieces});
        std::vector<A> sum(residual), y(sum.size()), y_apart(y);
        const ResidualSum formed{sum.data(), in_place ? sum.data() : residual.data(), branch.data(),
                                 dropout, pieces};
        std::vector<float> mean(static_cast<size_t>(s.R)), rstd(mean), mean_apart(mean),
            rstd_apart(mean);
        std::vector<A> sum_of_ref(residual);
        ref.layernorm_forward(
            *this->queue, {y.data(),
                           mean.data(),
                           rstd.data(),
                           nullptr,
                           gamma.data(),
                           beta.data(),
                           s.R,
                           s.C,
                           1e-5,
                           {},
                           {sum_of_ref.data(), residual.data(), branch.data(), dropout, pieces}});
        expect_same_bits_of_kernels(sum_of_ref, expected, "sum of the reference");
        host.layernorm_forward(*this->queue, {y.data(),
                                              mean.data(),
                                              rstd.data(),
                                              nullptr,
                                              gamma.data(),
                                              beta.data(),
                                              s.R,
                                              s.C,
                                              1e-5,
                                              {},
                                              formed});
        // A product rounded before a sum of magnitude up to 2 max.
        expect_close(sum, expected, 8 * eps32 * (max_abs(branch) + max_abs(residual)), ulp_of<A>(),
                     "sum");
        host.layernorm_forward(*this->queue,
                               {y_apart.data(), mean_apart.data(), rstd_apart.data(), sum.data(),
                                gamma.data(), beta.data(), s.R, s.C, 1e-5});
        expect_same_bits_of_kernels(mean, mean_apart, "mean");
        expect_same_bits_of_kernels(rstd, rstd_apart, "rstd");
        expect_same_bits_of_kernels(y, y_apart, "y");

        sum = residual;
        host.rmsnorm_forward(
            *this->queue,
            {y.data(), rstd.data(), nullptr, gamma.data(), s.R, s.C, 1e-5, {}, formed});
        expect_close(sum, expected, 8 * eps32 * (max_abs(branch) + max_abs(residual)), ulp_of<A>(),
                     "sum");
        host.rmsnorm_forward(*this->queue, {y_apart.data(), rstd_apart.data(), sum.data(),
                                            gamma.data(), s.R, s.C, 1e-5});
        expect_same_bits_of_kernels(rstd, rstd_apart, "rstd");
        expect_same_bits_of_kernels(y, y_apart, "y");
      }
}

// A large offset must not cancel away the variance.
TYPED_TEST(HostKernel, LayerNormKeepsTheVarianceOfShiftedRows) {
  using A = TypeParam;
  const int64_t C = 768;
  std::vector<A> x(static_cast<size_t>(C)), y(x), gamma(x), beta(x);
  for (int64_t c = 0; c < C; ++c) {
    assign(x[static_cast<size_t>(c)], 256.0 + (c % 2 == 0 ? 2.0 : -2.0));  // exact in bf16
    assign(gamma[static_cast<size_t>(c)], 1.0);
    assign(beta[static_cast<size_t>(c)], 0.0);
  }
  float mean = 0.0f, rstd = 0.0f;
  this->template host_kernels<A>().layernorm_forward(
      *this->queue, {y.data(), &mean, &rstd, x.data(), gamma.data(), beta.data(), 1, C, 0.0});
  EXPECT_EQ(mean, 256.0f);
  EXPECT_EQ(rstd, 0.5f);
}

}  // namespace gptbench::test
