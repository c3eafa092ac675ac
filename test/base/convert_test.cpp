#include "base/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gptbench {
namespace {

constexpr DType types[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

std::vector<double> through(const std::vector<double>& values, DType type) {
  const int64_t n = static_cast<int64_t>(values.size());
  std::vector<char> stored(static_cast<size_t>(n * size_of(type)));
  std::vector<double> back(values.size());
  convert_elements(values.data(), DType::f64, stored.data(), type, n);
  convert_elements(stored.data(), type, back.data(), DType::f64, n);
  return back;
}

TEST(Convert, KeepsWhatATypeHolds) {
  const std::vector<double> values = {0.0, -0.0, 1.0, -1.5, 0.00390625, 240.0};
  for (const DType type : types) EXPECT_EQ(through(values, type), values) << name_of(type);
}

TEST(Convert, RoundsToNearestEven) {
  const std::vector<double> x = {1.0 + 0x1p-9, 1.0 + 3 * 0x1p-9, 1.0 + 3 * 0x1p-12, 1.0 + 0x1p-30};
  EXPECT_EQ(through(x, DType::bf16), (std::vector<double>{1.0, 1.0 + 0x1p-7, 1.0, 1.0}));
  EXPECT_EQ(through(x, DType::f16), (std::vector<double>{x[0], x[1], 1.0 + 0x1p-10, 1.0}));
  EXPECT_EQ(through(x, DType::f32), (std::vector<double>{x[0], x[1], x[2], 1.0}));
  EXPECT_EQ(through(x, DType::f64), x);
}

TEST(Convert, LongerTypesHoldShorterOnes) {
  for (const DType shorter : {DType::bf16, DType::f16}) {
    for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
      const uint16_t stored = static_cast<uint16_t>(bits);
      float wide = 0.0f;
      uint16_t back = 0;
      convert_elements(&stored, shorter, &wide, DType::f32, 1);
      convert_elements(&wide, DType::f32, &back, shorter, 1);
      ASSERT_EQ(back, stored);
    }
  }
}

TEST(Convert, OneNumberThatIsNotFiniteIsFound) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const DType type : types)
    for (const double bad : {0.0, 240.0, infinity, -infinity, std::nan("")}) {
      std::vector<double> values(9, -1.5);
      values[7] = bad;
      std::vector<char> stored(values.size() * static_cast<size_t>(size_of(type)));
      convert_elements(values.data(), DType::f64, stored.data(), type, 9);
      EXPECT_EQ(all_finite(stored.data(), type, 9), std::isfinite(bad)) << name_of(type) << bad;
      EXPECT_TRUE(all_finite(stored.data(), type, 7));
    }
}

}  // namespace
}  // namespace gptbench
