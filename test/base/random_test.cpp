#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

namespace gptbench {
namespace {

using Words = std::array<uint32_t, 4>;

std::vector<float> normals(int64_t count, uint64_t first, uint64_t seed = 1, float std = 1.0f,
                           RandomStream stream = RandomStream::test, uint32_t instance = 0) {
  std::vector<float> out(static_cast<size_t>(count));
  fill_normal(out.data(), count, seed, stream, instance, first, std);
  return out;
}

bool same_bits(const float* a, const float* b, size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

// The known answers of Random123 (Salmon et al., SC11; file kat_vectors, philox4x32, 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffffull),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // The first digits of pi as counter and key.
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822ull),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomWord, IsAWordOfTheBlockOfItsElement) {
  const uint64_t seed = 0x0123456789abcdefull;
  for (uint64_t element : {0ull, 3ull, 4ull, 1000003ull, (1ull << 35) + 6}) {
    const uint64_t block = element / 4;
    const Words words =
        philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 7, 2}, seed);
    EXPECT_EQ(random_word(seed, RandomStream::tokens, 7, element), words[element % 4]);
  }
}

TEST(UniformOf, IsOpenAndCentred) {
  EXPECT_GT(uniform_of(0), 0.0f);
  EXPECT_LT(uniform_of(0xffffffffu), 1.0f);
  EXPECT_EQ(uniform_of(0), 0x1p-24f);
  EXPECT_EQ(uniform_of(0xffffffffu), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform_of(0x80000000u), 0.5f + 0x1p-24f);
}

// Moments of n draws lie within 5 of their standard errors: sqrt(1/n) of the mean, sqrt(2/n) of the
// variance, sqrt(6/n) of the skewness, sqrt(24/n) of the kurtosis. Seeds are fixed: no chance.
TEST(FillNormal, Moments) {
  const int64_t n = 1 << 20;
  for (uint64_t seed : {1ull, 42ull}) {
    double sums[5] = {};
    for (float value : normals(n, 0, seed)) {
      double power = 1.0;
      for (double& sum : sums) {
        sum += power;
        power *= static_cast<double>(value);
      }
    }
    const double count = static_cast<double>(n);
    EXPECT_NEAR(sums[1] / count, 0.0, 5 * std::sqrt(1 / count));
    EXPECT_NEAR(sums[2] / count, 1.0, 5 * std::sqrt(2 / count));
    // Raw moments of a standard normal: the third varies with 15/n, the fourth with 96/n.
    EXPECT_NEAR(sums[3] / count, 0.0, 5 * std::sqrt(15 / count));
    EXPECT_NEAR(sums[4] / count, 3.0, 5 * std::sqrt(96 / count));
  }
}

// Beyond 3 standard deviations lies erfc(3 / sqrt 2) of a normal distribution; the count varies
// with sqrt(n p). Draws reach sqrt(-2 ln 2^-24) = 5.77 at most.
TEST(FillNormal, Tails) {
  const int64_t n = 1 << 20;
  int64_t beyond = 0;
  for (float value : normals(n, 0)) {
    ASSERT_LT(std::fabs(value), 5.78f);
    if (std::fabs(value) > 3.0f) ++beyond;
  }
  const double expected = static_cast<double>(n) * std::erfc(3 / std::sqrt(2.0));
  EXPECT_NEAR(static_cast<double>(beyond), expected, 5 * std::sqrt(expected));
}

// Against Box and Muller in double. Logarithm, square root, scaling and the final product are off
// by about four roundings of 2^-24 relative; sine and cosine by 4e-8 of the series and a rounding
// of the angle, |x| <= pi/4. All of it times the largest radius, 5.8, stays below 2e-6.
TEST(FillNormal, IsBoxAndMuller) {
  const int64_t n = 1 << 16;
  const std::vector<float> drawn = normals(n, 0);
  const double pi = std::acos(-1.0);
  for (uint64_t pair = 0; pair < static_cast<uint64_t>(n) / 2; ++pair) {
    const double u = uniform_of(random_word(1, RandomStream::test, 0, 2 * pair));
    const double v = uniform_of(random_word(1, RandomStream::test, 0, 2 * pair + 1));
    const double radius = std::sqrt(-2 * std::log(u));
    ASSERT_NEAR(drawn[2 * pair], radius * std::cos(2 * pi * v), 2e-6) << pair;
    ASSERT_NEAR(drawn[2 * pair + 1], radius * std::sin(2 * pi * v), 2e-6) << pair;
  }
}

TEST(FillNormal, DependsOnTheGlobalElementAlone) {
  const int64_t n = 5000;
  const uint64_t first = 12345;  // in the middle of a block
  const std::vector<float> whole = normals(n, first);
  // Any split gives the same bits: pieces that start at every phase of a block, cross the borders
  // of the generator's chunks and are as short as one element.
  const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 64, 1021, 1024, 1025, n};
  for (int64_t length : lengths) {
    std::vector<float> pieces;
    for (int64_t begin = 0; begin < n; begin += length) {
      const int64_t count = std::min(length, n - begin);
      const std::vector<float> piece = normals(count, first + static_cast<uint64_t>(begin));
      pieces.insert(pieces.end(), piece.begin(), piece.end());
    }
    ASSERT_EQ(pieces.size(), whole.size());
    EXPECT_TRUE(same_bits(pieces.data(), whole.data(), whole.size())) << "pieces of " << length;
  }
}

TEST(FillNormal, WritesNothingBeyondItsRange) {
  std::vector<float> out(12, -7.0f);
  fill_normal(out.data() + 1, 10, 1, RandomStream::test, 0, 3, 1.0f);
  EXPECT_EQ(out.front(), -7.0f);
  EXPECT_EQ(out.back(), -7.0f);
  fill_normal(out.data(), 0, 1, RandomStream::test, 0, 3, 1.0f);
  EXPECT_EQ(out.front(), -7.0f);
}

TEST(FillNormal, ElementsBeyondFourBillionAreTheirOwn) {
  const std::vector<float> low = normals(64, 0);
  const std::vector<float> high = normals(64, uint64_t{1} << 34);  // block 2^32
  EXPECT_FALSE(same_bits(low.data(), high.data(), low.size()));
}

TEST(FillNormal, SeedsStreamsAndInstancesDiffer) {
  const std::vector<float> base = normals(64, 0);
  const std::vector<float> others[] = {normals(64, 0, 2), normals(64, 0, uint64_t{1} << 32),
                                       normals(64, 0, 1, 1.0f, RandomStream::weights),
                                       normals(64, 0, 1, 1.0f, RandomStream::test, 1)};
  for (const std::vector<float>& other : others)
    EXPECT_FALSE(same_bits(base.data(), other.data(), base.size()));
}

// Scaling multiplies the radius before the angle: two roundings of 2^-24 apart at most.
TEST(FillNormal, StandardDeviationScales) {
  const std::vector<float> unit = normals(4096, 0);
  const std::vector<float> scaled = normals(4096, 0, 1, 0.02f);
  for (size_t i = 0; i < unit.size(); ++i)
    ASSERT_NEAR(scaled[i], 0.02f * unit[i], std::fabs(0.02f * unit[i]) * 0x1p-22f);
}

// The bits are part of what results are compared by: they must never change. The first values, and
// the FNV-1a hash of the words of a million (GCC and clang, with and without optimisation).
TEST(FillNormal, GoldenBits) {
  const std::vector<float> drawn = normals(1 << 20, 0);
  std::vector<uint32_t> bits(drawn.size());
  std::memcpy(bits.data(), drawn.data(), drawn.size() * sizeof(float));
  const uint32_t golden[] = {0x3fa113b0, 0x3fa3d114, 0xbf281692, 0x3e326ada,
                             0xbf95b45e, 0xbf3595bb, 0xbacffb57, 0xbd3323d8};
  for (size_t i = 0; i < std::size(golden); ++i) EXPECT_EQ(bits[i], golden[i]) << i;
  uint32_t hash = 2166136261u;
  for (uint32_t word : bits) hash = (hash ^ word) * 16777619u;
  EXPECT_EQ(hash, 0xbd483a20u);
}

}  // namespace
}  // namespace gptbench
