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
    assign(x[i], within_range<A>(values[i]));
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

// The exponential is good to 2 ulp, the sigmoid to 4, two products follow: 16 eps32. The derivative
// s (1 + z (1 - s)) crosses zero; 1 - s keeps the error of s, which z multiplies.
TYPED_TEST(HostKernel, SwigluEqualsReference) {
  using A = TypeParam;
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  for (const int64_t R : {0, 1, 7})
    for (const int64_t F : {1, 33, 1100}) {
      const auto x = random_array<A>(2 * R * F, 1, 3.0), dy = random_array<A>(R * F, 2);
      std::vector<A> y(dy.size()), y_ref(y), dx(x), dx_ref(x.size());
      host.swiglu_forward(*this->queue, {y.data(), x.data(), R, F});
      ref.swiglu_forward(*this->queue, {y_ref.data(), x.data(), R, F});
      expect_close(y, y_ref, 0.0, 16 * eps32 + ulp_of<A>(), "y");
      host.swiglu_backward(*this->queue, {dx.data(), dy.data(), dx.data(), R, F});  // in place
      ref.swiglu_backward(*this->queue, {dx_ref.data(), dy.data(), x.data(), R, F});
      const double z = max_abs(x);
      expect_close(dx, dx_ref, 16 * eps32 * (1.0 + z) * max_abs(dy) * z, ulp_of<A>(), "dx");
    }
}

TYPED_TEST(HostKernel, SwigluOfLargeArguments) {
  using A = TypeParam;
  std::vector<A> x(8), y(4), dx(8), dy(4);
  const double gates[] = {-1e30, -100.0, 100.0, std::nan("")};
  for (size_t f = 0; f < 4; ++f) {
    assign(x[f], within_range<A>(gates[f]));
    assign(x[4 + f], 1.0);
    assign(dy[f], 1.0);
  }
  this->template host_kernels<A>().swiglu_forward(*this->queue, {y.data(), x.data(), 1, 4});
  this->template host_kernels<A>().swiglu_backward(*this->queue,
                                                   {dx.data(), dy.data(), x.data(), 1, 4});
  const double silu[] = {0.0, 0.0, 100.0}, slope[] = {0.0, 0.0, 1.0};
  for (size_t f = 0; f < 3; ++f) {
    EXPECT_NEAR(value_of(y[f]), silu[f], 1e-6);
    EXPECT_NEAR(value_of(dx[f]), slope[f], 1e-6);
    EXPECT_NEAR(value_of(dx[4 + f]), silu[f], 1e-6);
  }
  EXPECT_TRUE(std::isnan(value_of(y[3])) && std::isnan(value_of(dx[3])) &&
              std::isnan(value_of(dx[7])));
}

// tanh is good to 4 ulp; 1 - y^2 takes two roundings of numbers up to one.
TYPED_TEST(HostKernel, TanhEqualsReference) {
  using A = TypeParam;
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  for (const int64_t n : sizes) {
    const auto x = random_array<A>(n, 1), dy = random_array<A>(n, 2);
    std::vector<A> y(x), y_ref(x.size()), dx(dy), dx_ref(x.size());
    host.tanh_forward(*this->queue, {y.data(), y.data(), n});  // in place
    ref.tanh_forward(*this->queue, {y_ref.data(), x.data(), n});
    expect_close(y, y_ref, 0.0, 8 * eps32 + ulp_of<A>(), "tanh");
    host.tanh_backward(*this->queue, {dx.data(), dx.data(), y_ref.data(), n});  // in place
    ref.tanh_backward(*this->queue, {dx_ref.data(), dy.data(), y_ref.data(), n});
    expect_close(dx, dx_ref, 4 * eps32 * max_abs(dy), ulp_of<A>(), "dtanh");
  }
}

// Sine and cosine are good to 1e-7, less than 2 eps32, and two products add up, each rounded; a
// place near the end of a sequence of 131,072, too.
TYPED_TEST(HostKernel, RotaryEqualsReference) {
  using A = TypeParam;
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  const Positions whole, pieces{{3, 131069}, 4};
  for (const int64_t R : {0, 1, 14})
    for (const int64_t D : {2, 10, 128, 514})  // the last is longer than sines are kept at a time
      for (const Positions& positions : {whole, pieces})
        for (const bool inverse : {false, true})
          for (const int64_t gap : {0, 5}) {  // rows of 16 bytes where D allows it, and others
            const int64_t heads = 3, row = heads * D + gap;
            auto x = random_array<A>(R * row, 1);
            auto x_ref = x;
            host.rotary(*this->queue, {x.data(), R, heads, D, row, 5e5, inverse, 7, positions});
            ref.rotary(*this->queue, {x_ref.data(), R, heads, D, row, 5e5, inverse, 7, positions});
            expect_close(x, x_ref, 2 * 4 * eps32 * max_abs(x_ref), ulp_of<A>(), "x");
          }
}

// Pairs of rows are more than the emulation's threads (12,288).
TYPED_TEST(HostKernel, RotaryOfManyRowsEqualsReference) {
  using A = TypeParam;
  const int64_t R = 50, D = 514;
  auto x = random_array<A>(R * D, 1);
  auto x_ref = x;
  this->template host_kernels<A>().rotary(*this->queue, {x.data(), R, 1, D, D, 5e5, false, R, {}});
  this->template ref_kernels<A>().rotary(*this->queue,
                                         {x_ref.data(), R, 1, D, D, 5e5, false, R, {}});
  expect_close(x, x_ref, 2 * 4 * eps32 * max_abs(x_ref), ulp_of<A>(), "x");
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

}  // namespace gptbench::test
