// Any decomposition trains the model that one rank trains: an explicit table for each number of
// ranks, and combinations drawn at random (GPTBENCH_TEST_SEED, which is printed).
#include <gtest/gtest.h>

#include <cstdlib>

#include "combination_tables.h"
#include "equivalence_checks.h"

namespace gptbench {
namespace {

constexpr int steps = 5;

// Against one reference rank in `compute`, with the bound of the gradient's norm given.
void check_double_precision(MpiWorld& world, const SmallModel& m, const char* compute,
                            double bound_of_norms) {
  SCOPED_TRACE(name_of(m));
  const Trained all = train_decomposed(m, steps, &world);
  check_ranks(world, m, all);
  if (world.rank() != 0) return;
  const Trained& one = one_rank(m, compute, "ref", steps);
  EXPECT_LT(largest_difference(all.losses, one.losses), 1e-12);
  EXPECT_LT(largest_difference(all.grad_norms, one.grad_norms), bound_of_norms);
  for (size_t t = 0; t < one.gradients.size(); ++t)
    EXPECT_LE(distance_to(all.gradients[t], one.gradients[t]), 1e-12 * norm(one.gradients))
        << one.tensors[t];
}

TEST(Equivalence, OfTheTable) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : combinations_of(table_fp32, world.size()))
    check_single_precision(world, m, steps);
}

TEST(Equivalence, OfTheFamilies) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : combinations_of(table_of_families, world.size()))
    check_single_precision(world, m, steps);
}

TEST(Equivalence, OfRandomCombinations) {
  MpiWorld world(nullptr, nullptr);
  const char* given = std::getenv("GPTBENCH_TEST_SEED");
  int64_t seed = given != nullptr ? std::atoll(given) : 20240611;
  world.broadcast(seed);
  if (world.rank() == 0) std::printf("GPTBENCH_TEST_SEED=%lld\n", static_cast<long long>(seed));
  std::mt19937 random(static_cast<uint32_t>(seed + 1000 * world.size()));
  const int draws = world.size() <= 16 ? 3 : 1;
  for (int i = 0; i < draws; ++i)
    check_single_precision(world, random_combination(world.size(), random));
}

// Orders of summation differ by a few units of 2^-53 a step; five steps of AdamW do not amplify
// them to 1e-12.
TEST(Equivalence, InDoublePrecision) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : combinations_of(table_fp64, world.size()))
    check_double_precision(world, m, "fp64", 1e-12);
  for (const SmallModel& m : combinations_of(table_of_families_fp64, world.size()))
    check_double_precision(world, m, "fp64", 1e-12);
}

TEST(Equivalence, InBf16) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : combinations_of(table_bf16, world.size()))
    check_half_precision(world, m, 0x1p-8);
  for (const SmallModel& m : combinations_of(table_of_families_bf16, world.size()))
    check_half_precision(world, m, 0x1p-8);
}

TEST(Equivalence, InFp16) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : combinations_of(table_fp16, world.size()))
    check_half_precision(world, m, 0x1p-11);
}

// Copies are functions of numbers that agree to the last bits of double precision, and of scales
// that are powers of two: the same bytes in every decomposition, but for a number that lies within
// 2^-50 of the middle between two fp8 numbers.
TEST(Equivalence, InFp8OfDoublePrecision) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : combinations_of(table_fp8_of_fp64, world.size()))
    check_double_precision(world, m, "fp8", 1e-11);
}

TEST(Equivalence, InFp8OfBf16) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : combinations_of(table_fp8_of_bf16, world.size()))
    check_fp8_of_bf16(world, m);
}

TEST(Equivalence, ZeroStagesAreIdenticalWhereDeterministic) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : combinations_of(table_of_stages, world.size()))
    check_identical_stages(world, m);
}

}  // namespace
}  // namespace gptbench
