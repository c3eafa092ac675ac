#include "device/host/simd_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace gptbench {
namespace {

// Distance in units of the last place of the exact value's float.
double ulps(float value, double exact) {
  const float rounded = static_cast<float>(exact);
  const double ulp = static_cast<double>(std::nextafter(rounded, 2.0f * rounded)) - rounded;
  return std::abs((static_cast<double>(value) - exact) / ulp);
}

}  // namespace

TEST(SimdMath, ExpIsGoodToTwoUlp) {
  constexpr int points = 1 << 20;
  std::vector<float> x(points), y(points);
  for (int i = 0; i < points; ++i)
    x[static_cast<size_t>(i)] =
        -87.3f + 175.6f * static_cast<float>(i) / static_cast<float>(points - 1);
#pragma omp simd
  for (int i = 0; i < points; ++i) y[i] = simd::exp(x[i]);
  double worst = 0.0;
  for (int i = 0; i < points; ++i)
    worst = std::max(worst, ulps(y[static_cast<size_t>(i)],
                                 std::exp(static_cast<double>(x[static_cast<size_t>(i)]))));
  EXPECT_LE(worst, 2.0);
}

TEST(SimdMath, ExpAtTheEnds) {
  EXPECT_EQ(simd::exp(0.0f), 1.0f);
  EXPECT_EQ(simd::exp(-87.4f), 0.0f);
  EXPECT_EQ(simd::exp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(simd::exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_NEAR(simd::exp(1000.0f), simd::exp(88.3f), 1e-4f * simd::exp(88.3f));
  EXPECT_TRUE(std::isfinite(simd::exp(std::numeric_limits<float>::infinity())));
}

TEST(SimdMath, PowersOfTwoAreGoodToThreeUlp) {
  constexpr int points = 1 << 20;
  std::vector<float> x(points), y(points);
  for (int i = 0; i < points; ++i)
    x[static_cast<size_t>(i)] =
        -100.0f + 227.0f * static_cast<float>(i) / static_cast<float>(points - 1);
#pragma omp simd
  for (int i = 0; i < points; ++i) y[i] = simd::exp2(x[i]);
  double worst = 0.0;
  for (int i = 0; i < points; ++i)
    worst = std::max(worst, ulps(y[static_cast<size_t>(i)],
                                 std::exp2(static_cast<double>(x[static_cast<size_t>(i)]))));
  EXPECT_LE(worst, 3.0);
  EXPECT_EQ(simd::exp2(0.0f), 1.0f);
  EXPECT_EQ(simd::exp2(-101.0f), 0.0f);
  EXPECT_EQ(simd::exp2(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(simd::exp2(std::numeric_limits<float>::quiet_NaN())));
}

TEST(SimdMath, TanhIsGoodToFourUlp) {
  constexpr int points = 1 << 20;
  std::vector<float> x(points), y(points);
  for (int i = 0; i < points; ++i)
    x[static_cast<size_t>(i)] =
        -20.0f + 40.0f * static_cast<float>(i) / static_cast<float>(points - 1);
#pragma omp simd
  for (int i = 0; i < points; ++i) y[i] = simd::tanh(x[i]);
  double worst = 0.0;
  for (int i = 0; i < points; ++i)
    worst = std::max(worst, ulps(y[static_cast<size_t>(i)],
                                 std::tanh(static_cast<double>(x[static_cast<size_t>(i)]))));
  EXPECT_LE(worst, 4.0);
  EXPECT_EQ(simd::tanh(0.0f), 0.0f);
  EXPECT_EQ(simd::tanh(1e-30f), 1e-30f);
  EXPECT_EQ(simd::tanh(std::numeric_limits<float>::infinity()), 1.0f);
  EXPECT_EQ(simd::tanh(-1e30f), -1.0f);
  EXPECT_TRUE(std::isnan(simd::tanh(std::numeric_limits<float>::quiet_NaN())));
}

// The accuracies that simd_math.h states, over the ranges that it states.
TEST(SimdMath, ExponentialsReciprocalsAndSigmoidsOfBothAccuracies) {
  constexpr int points = 1 << 18;
  double powers[3] = {}, exponential = 0.0, reciprocals[2] = {}, sigmoids[2] = {};
  const auto note = [](double& worst, double value, double exact) {
    worst = std::max(worst, std::abs(value / exact - 1.0));
  };
  const auto value_of = [](const simd::Exponential& e) {
    return static_cast<double>(e.significand) * static_cast<double>(e.power);
  };
  for (int i = 0; i <= points; ++i) {
    const float x = -87.0f + 174.0f * static_cast<float>(i) / static_cast<float>(points);
    const double exact = std::exp(static_cast<double>(x));
    note(powers[0], value_of(simd::exp_by_powers_of_two<3>(x)), exact);
    note(powers[1], value_of(simd::exp_by_powers_of_two<4>(x)), exact);
    note(powers[2], value_of(simd::exp_by_powers_of_two<5>(x)), exact);
    note(exponential, value_of(simd::exponential<simd::Accuracy::full>(x)), exact);
    const float d = 1.0f + static_cast<float>(exact);
    note(reciprocals[0], static_cast<double>(simd::reciprocal<simd::Accuracy::bf16>(d)),
         1.0 / static_cast<double>(d));
    note(reciprocals[1], static_cast<double>(simd::reciprocal<simd::Accuracy::full>(d)),
         1.0 / static_cast<double>(d));
    const simd::Sigmoid coarse = simd::sigmoid<simd::Accuracy::bf16>(x);
    const simd::Sigmoid fine = simd::sigmoid<simd::Accuracy::full>(x);
    note(sigmoids[0], static_cast<double>(coarse.value), 1.0 / (1.0 + 1.0 / exact));
    note(sigmoids[0], static_cast<double>(coarse.complement), 1.0 / (1.0 + exact));
    note(sigmoids[1], static_cast<double>(fine.value), 1.0 / (1.0 + 1.0 / exact));
    note(sigmoids[1], static_cast<double>(fine.complement), 1.0 / (1.0 + exact));
  }
  // What rounding x log2 e does: |x| 2^-24 for the constant and as much for the product where it
  // is not fused with the subtraction.
  constexpr double argument = 2.0 * 87.0 * 0x1p-24, ulp = 0x1p-23;
  EXPECT_LE(powers[0], 7.6e-5 + argument);
  EXPECT_LE(powers[1], 2.7e-6 + argument);
  EXPECT_LE(powers[2], 1.6e-7 + 2.0 * ulp + argument);
  EXPECT_LE(exponential, 2.0 * ulp);
  EXPECT_LE(reciprocals[0], 1.3e-4);
  EXPECT_LE(reciprocals[1], 2.0 * ulp);
  EXPECT_LE(sigmoids[0], 0x1p-12);
  EXPECT_LE(sigmoids[1], 8.0 * ulp);
}

// Small angles, all quadrants, both signs, and those of position 131,071.
TEST(SimdMath, SineAndCosineOfQuarterTurns) {
  constexpr double half_pi = 1.57079632679489661923;
  for (const double scale : {1e-6, 1.0, 131071.0 / half_pi}) {
    double worst = 0.0;
    for (int i = -4000; i <= 4000; ++i) {
      const double quarters = scale * static_cast<double>(i) / 1000.0;
      const simd::SinCos turn = simd::sincos_quarters(quarters);
      // The double's own error grows with the angle.
      const double angle = half_pi * std::remainder(quarters, 4.0);
      worst = std::max({worst, std::abs(static_cast<double>(turn.sin) - std::sin(angle)),
                        std::abs(static_cast<double>(turn.cos) - std::cos(angle))});
    }
    EXPECT_LE(worst, 1e-7);
  }
  EXPECT_EQ(simd::sincos_quarters(0.0).cos, 1.0f);
}

TEST(SimdMath, StoreRoundsLikeBfloat16) {
  for (uint32_t u = 0; u < 0xffffff00u; u += 65521u) {  // a prime: all kinds of low bits
    const float value = simd::bits_to_float(u);
    if (std::isnan(value)) continue;
    bfloat16 stored;
    simd::store(stored, value);
    ASSERT_EQ(stored.bits, bfloat16(value).bits) << u;
  }
  for (const uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7f810000u, 0xff810000u}) {
    bfloat16 stored;
    simd::store(stored, simd::bits_to_float(nan));
    EXPECT_TRUE(std::isnan(static_cast<float>(stored))) << nan;
  }
}

TEST(SimdMath, SumsAndMaximaOfAnyLength) {
  for (const int64_t n : {0, 1, 15, 63, 64, 65, 640, 1000}) {
    std::vector<float> x(static_cast<size_t>(n));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 101) - 50.0f;
    const float* const p = x.data();
    // Integers: exact in any order.
    EXPECT_EQ(simd::sum_of(n, [=](int64_t i) { return p[i]; }),
              std::accumulate(x.begin(), x.end(), 0.0f));
    EXPECT_EQ(simd::max_of(n, [=](int64_t i) { return p[i]; }),
              x.empty() ? -std::numeric_limits<float>::infinity()
                        : *std::max_element(x.begin(), x.end()));
  }
}

}  // namespace gptbench
