#include "kernel_test.h"

namespace gptbench::test {
namespace {

constexpr int64_t sizes[] = {0, 1, 15, 513, 4096, 10007};
constexpr Dropout third{0.3, 99, 5};

}  // namespace

// The polynomial exponential is good to 2 ulp, the sigmoid to 4, x^3 adds 3 to the argument 2u,
// |2u| < 40 where the result is not negligible: 128 eps32 relative. The reference's own 1 + tanh
// cancels to 2^-53 |x|.
TYPED_TEST(HostKernel, GeluEqualsReference) {
  using A = TypeParam;
  for (const int64_t n : sizes) {
    const auto x = random_array<A>(n, 1, 3.0), dy = random_array<A>(n, 2);
    std::vector<A> y(x.size()), y_ref(y), dx(dy), dx_ref(y);
    const KernelTable &host = this->template host_kernels<A>(),
                      &ref = this->template ref_kernels<A>();
    host.gelu_forward(*this->queue, {y.data(), x.data(), n});
    ref.gelu_forward(*this->queue, {y_ref.data(), x.data(), n});
    expect_close(y, y_ref, 0x1p-53 * max_abs(x), 128 * eps32 + ulp_of<A>(), "gelu");
    host.gelu_backward(*this->queue, {dx.data(), dx.data(), x.data(), n});  // in place
    ref.gelu_backward(*this->queue, {dx_ref.data(), dy.data(), x.data(), n});
    // gelu' = s + x s (1 - s) slope crosses zero, its terms are below 4.
    expect_close(dx, dx_ref, 128 * eps32 * 4 * (1.0 + max_abs(dy)), ulp_of<A>(), "dgelu");
  }
}

TYPED_TEST(HostKernel, GeluOfLargeArguments) {
  using A = TypeParam;
  std::vector<A> x(6), y(6), dx(6), dy(6);
  const double values[] = {-1e30, -60.0, -13.0, 13.0, 60.0, 1e12};
  for (size_t i = 0; i < 6; ++i) {
    assign(x[i], values[i]);
    assign(dy[i], 1.0);
  }
  this->template host_kernels<A>().gelu_forward(*this->queue, {y.data(), x.data(), 6});
  this->template host_kernels<A>().gelu_backward(*this->queue, {dx.data(), dy.data(), x.data(), 6});
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(value_of(y[i]), values[i] < 0 ? 0.0 : value_of(x[i]), 1e-6);
    EXPECT_NEAR(value_of(dx[i]), values[i] < 0 ? 0.0 : 1.0, 1e-6);
  }
}

// A run that has diverged must be seen: no kernel turns NaN into a number.
TYPED_TEST(HostKernel, GeluKeepsNan) {
  using A = TypeParam;
  std::vector<A> x(33), y(33), dy(33), dx(33);
  for (size_t i = 0; i < x.size(); ++i) {
    assign(x[i], i == 20 ? std::nan("") : 1.0);
    assign(dy[i], 1.0);
  }
  this->template host_kernels<A>().gelu_forward(*this->queue, {y.data(), x.data(), 33});
  this->template host_kernels<A>().gelu_backward(*this->queue,
                                                 {dx.data(), dy.data(), x.data(), 33});
  EXPECT_TRUE(std::isnan(value_of(y[20])) && std::isnan(value_of(dx[20])));
  EXPECT_FALSE(std::isnan(value_of(y[19])) || std::isnan(value_of(dx[19])));
}

// Rows of whole sequences; the second half of a sequence, from the middle of a micro-batch on, of
// which this rank holds two pieces.
TYPED_TEST(HostKernel, ResidualAndDropoutEqualReference) {
  using A = TypeParam;
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  const GlobalRows whole{3, 0, 5, 5, {}}, pieces{1, 3, 4, 8, {{2, 6}, 2}};
  for (const int64_t R : {0, 1, 7, 12})
    for (const int64_t C : {1, 33, 1100})
      for (const GlobalRows& rows : {whole, pieces})
        for (const Dropout& dropout : {Dropout{}, third})
          for (const bool with_residual : {false, true}) {
            const auto x = random_array<A>(R * C, 1), residual = random_array<A>(R * C, 2);
            std::vector<A> y(residual), y_ref(x.size()), dx(x), dx_ref(x.size());
            host.residual_forward(*this->queue, {y.data(), with_residual ? y.data() : nullptr,
                                                 x.data(), R, C, dropout, rows});
            ref.residual_forward(
                *this->queue, {y_ref.data(), with_residual ? residual.data() : nullptr, x.data(), R,
                               C, dropout, rows});
            // A product rounded before a sum of magnitude up to 2 max.
            expect_close(y, y_ref, 8 * eps32 * (max_abs(x) + max_abs(residual)), ulp_of<A>(), "y");
            host.dropout_backward(*this->queue, {dx.data(), dx.data(), R, C, dropout, rows});
            ref.dropout_backward(*this->queue, {dx_ref.data(), x.data(), R, C, dropout, rows});
            expect_close(dx, dx_ref, 0.0, 2 * eps32 + ulp_of<A>(), "dx");
          }
}

// What a rank's pieces of two sequences drop is what one rank drops at those positions.
TYPED_TEST(HostKernel, DropoutFollowsGlobalPositions) {
  using A = TypeParam;
  const int64_t C = 10, T = 8;
  const KernelTable& host = this->template host_kernels<A>();
  const std::vector<A> ones(static_cast<size_t>(2 * T * C), A(1.0f));
  std::vector<A> whole(ones), pieces(ones);
  host.residual_forward(*this->queue,
                        {whole.data(), nullptr, ones.data(), 2 * T, C, third, {4, 0, T, T, {}}});
  const GlobalRows rows{4, 0, 4, T, {{2, 4}, 2}};  // positions 2, 3, 4, 5 of either sequence
  host.residual_forward(*this->queue, {pieces.data(), nullptr, ones.data(), 8, C, third, rows});
  for (int64_t r = 0; r < 8; ++r)
    for (int64_t c = 0; c < C; ++c) {
      const int64_t at = (r / 4 * T + r % 4 + 2) * C + c;
      EXPECT_EQ(value_of(pieces[static_cast<size_t>(r * C + c)]),
                value_of(whole[static_cast<size_t>(at)]));
    }
}

// The mask of backward is that of forward, and drops the share that was asked for: the count of n
// Bernoulli draws lies within 6 standard deviations.
TYPED_TEST(HostKernel, DropoutForwardAndBackwardShareTheMask) {
  using A = TypeParam;
  const int64_t n = 100000;
  const GlobalRows rows{2, 0, 10, 10, {}};
  std::vector<A> ones(static_cast<size_t>(n), A(1.0f)), y(ones), dx(ones);
  const KernelTable& host = this->template host_kernels<A>();
  host.residual_forward(*this->queue, {y.data(), nullptr, ones.data(), n / 100, 100, third, rows});
  host.dropout_backward(*this->queue, {dx.data(), ones.data(), n / 100, 100, third, rows});
  expect_same_bits(y, dx, "mask");
  double dropped = 0.0;
  for (const A& v : y) dropped += value_of(v) == 0.0 ? 1.0 : 0.0;
  const double count = static_cast<double>(n);
  EXPECT_NEAR(dropped, 0.3 * count, 6.0 * std::sqrt(0.3 * 0.7 * count));
}

// To A and back, whole and in rows that are part of wider ones, assigned and added.
TYPED_TEST(HostKernel, ConvertEqualsReference) {
  using A = TypeParam;
  const DType type = activation_type(compute_of<A>());
  for (const int64_t R : {0, 1, 5})
    for (const int64_t C : {1, 17, 9001})
      for (const bool accumulate : {false, true}) {
        const int64_t x_row = C + 2, y_row = C + 3;
        const auto x = random_array<float>(R * x_row, 1);
        std::vector<A> y = random_array<A>(R * y_row, 2), y_ref(y);
        std::vector<float> z = random_array<float>(R * x_row, 3), z_ref(z);
        for (const bool host : {true, false}) {
          const KernelTable& kernels =
              host ? this->template host_kernels<A>() : this->template ref_kernels<A>();
          std::vector<A>& to = host ? y : y_ref;
          std::vector<float>& back = host ? z : z_ref;
          kernels.convert(*this->queue,
                          {to.data(), x.data(), R, C, y_row, x_row, type, DType::f32, accumulate});
          kernels.convert(*this->queue, {back.data(), to.data(), R, C, x_row, y_row, DType::f32,
                                         type, accumulate});
        }
        // A sum of two in float or double, rounded once to A: results differ by one rounding.
        expect_close(y, y_ref, 0.0, accumulate ? ulp_of<A>() : 0.0, "to A");
        expect_close(z, z_ref, accumulate ? 4 * ulp_of<A>() * (max_abs(y) + max_abs(z)) : 0.0, 0.0,
                     "from A");
      }
}

}  // namespace gptbench::test
