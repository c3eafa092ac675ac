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

TYPED_TEST(HostKernel, ResidualAndDropoutEqualReference) {
  using A = TypeParam;
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  for (const int64_t n : sizes)
    for (const Dropout& dropout : {Dropout{}, third})
      for (const bool with_residual : {false, true}) {
        const auto x = random_array<A>(n, 1), residual = random_array<A>(n, 2);
        std::vector<A> y(residual), y_ref(x.size()), dx(x), dx_ref(x.size());
        const int64_t first = 4 * 1237 + n % 4;  // an element that does not start a Philox block
        host.residual_forward(*this->queue, {y.data(), with_residual ? y.data() : nullptr, x.data(),
                                             n, dropout, first});
        ref.residual_forward(*this->queue, {y_ref.data(), with_residual ? residual.data() : nullptr,
                                            x.data(), n, dropout, first});
        // A product rounded before a sum of magnitude up to 2 max.
        expect_close(y, y_ref, 8 * eps32 * (max_abs(x) + max_abs(residual)), ulp_of<A>(), "y");
        host.dropout_backward(*this->queue, {dx.data(), dx.data(), n, dropout, first});
        ref.dropout_backward(*this->queue, {dx_ref.data(), x.data(), n, dropout, first});
        expect_close(dx, dx_ref, 0.0, 2 * eps32 + ulp_of<A>(), "dx");
      }
}

// The mask of backward is that of forward, and drops the share that was asked for: the count of n
// Bernoulli draws lies within 6 standard deviations.
TYPED_TEST(HostKernel, DropoutForwardAndBackwardShareTheMask) {
  using A = TypeParam;
  const int64_t n = 100000;
  std::vector<A> ones(static_cast<size_t>(n), A(1.0f)), y(ones), dx(ones);
  const KernelTable& host = this->template host_kernels<A>();
  host.residual_forward(*this->queue, {y.data(), nullptr, ones.data(), n, third, 17});
  host.dropout_backward(*this->queue, {dx.data(), ones.data(), n, third, 17});
  expect_same_bits(y, dx, "mask");
  double dropped = 0.0;
  for (const A& v : y) dropped += value_of(v) == 0.0 ? 1.0 : 0.0;
  const double count = static_cast<double>(n);
  EXPECT_NEAR(dropped, 0.3 * count, 6.0 * std::sqrt(0.3 * 0.7 * count));
}

TYPED_TEST(HostKernel, CastRoundsToNearestEven) {
  using A = TypeParam;
  for (const int64_t n : sizes) {
    const auto x = random_array<float>(n, 1);
    std::vector<A> y(x.size()), y_ref(y);
    this->template host_kernels<A>().cast(*this->queue, {y.data(), x.data(), n});
    this->template ref_kernels<A>().cast(*this->queue, {y_ref.data(), x.data(), n});
    expect_same_bits(y, y_ref, "cast");
  }
}

}  // namespace gptbench::test
