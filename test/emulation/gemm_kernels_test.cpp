// What matrix products need beside the library.
#include "cuda/gemm_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/fp8.h"

namespace gptbench {
namespace {

TEST(GemmKernels, AddEachElementOnce) {
  for (const size_t n : {1u, 255u, 256u, 100000u}) {
    std::vector<float> x(n), y(n + 1, 0.5f);
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i);
    add_f32(nullptr, y.data(), x.data(), static_cast<int64_t>(n));
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], 0.5f + static_cast<float>(i)) << i;
    EXPECT_EQ(y[n], 0.5f);
  }
}

// The same numbers in every type, as close as its rounding allows; mean 0 and the deviation asked
// for to five standard errors.
TEST(GemmKernels, FillWithTheSameRandomNumbersInEveryType) {
  constexpr size_t n = 40000;
  constexpr float scale = 0.25f;
  constexpr uint32_t seed = 7;
  std::vector<float> exact(n);
  fill_random(nullptr, exact.data(), n, DType::f32, scale, seed);
  double sum = 0.0, squares = 0.0;
  for (const float x : exact) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const double error = 5.0 * static_cast<double>(scale) / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(sum / n, 0.0, error);
  EXPECT_NEAR(std::sqrt(squares / n), static_cast<double>(scale), error);

  std::vector<bfloat16> brain(n);
  std::vector<float16> half(n);
  std::vector<uint8_t> e4m3(n), e5m2(n);
  fill_random(nullptr, brain.data(), n, DType::bf16, scale, seed);
  fill_random(nullptr, half.data(), n, DType::f16, scale, seed);
  fill_random(nullptr, e4m3.data(), n, DType::fp8_e4m3, scale, seed);
  fill_random(nullptr, e5m2.data(), n, DType::fp8_e5m2, scale, seed);
  for (size_t i = 0; i < n; ++i) {
    ASSERT_EQ(brain[i].bits, bfloat16(exact[i]).bits) << i;
    ASSERT_EQ(half[i].bits, float16(exact[i]).bits) << i;
    ASSERT_EQ(e4m3[i], fp8_encode(exact[i], fp8_format(DType::fp8_e4m3))) << i;
    ASSERT_EQ(e5m2[i], fp8_encode(exact[i], fp8_format(DType::fp8_e5m2))) << i;
  }
  std::vector<float> other(n);
  fill_random(nullptr, other.data(), n, DType::f32, scale, seed + 1);
  EXPECT_NE(other, exact);
}

TEST(GemmKernels, FillMoreElementsThanAGridHasThreads) {
  constexpr size_t threads = size_t{65535} * 256, n = threads + 3;
  constexpr uint8_t nan = 0x7f;  // what no number becomes
  std::vector<uint8_t> x(n + 1, nan);
  fill_random(nullptr, x.data(), n, DType::fp8_e4m3, 0.25f, 7);
  for (size_t i = threads; i < n; ++i) EXPECT_NE(x[i], nan) << i;
  EXPECT_EQ(x[n], nan);
}

}  // namespace
}  // namespace gptbench
