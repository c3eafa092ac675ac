// Any decomposition trains the model that one rank trains: an explicit table for each number of
// ranks, and combinations drawn at random (GPTBENCH_TEST_SEED, which is printed).
#include <gtest/gtest.h>

#include <cstdlib>

#include "equivalence_checks.h"

namespace gptbench {
namespace {

constexpr int steps = 5;

// Ranks of a combination are the product of tp, cp, pp and dp.
const char* const table[] = {
    "",
    "full",
    "full every3 micro2 host",
    "selective dropout",
    "optimizer,parameters file",
    "activations L5 file",
    "activations full every2 L8 dropout host",
    "optimizer,parameters,activations selective L5 file",
    // two ranks
    "tp2",
    "tp2 sp host",
    "tp2 sp full dropout",
    "tp2 sp selective micro3",
    "pp2 gpipe batch5",
    "pp2 1f1b host",
    "pp2 zero_bubble selective",
    "pp2 v2 batch5",
    "pp2 v3 L8 batch1",
    "pp2 split1,3 gpipe",
    "dp2 batch7 micro2 dropout",
    "dp2 zero1 host",
    "dp2 zero2 full",
    "dp2 zero3 full every2 batch9",
    "dp2 zero3 optimizer,parameters host",
    "dp2 zero1 optimizer file",
    "dp2 zero3 activations full L5 batch9",
    "pp2 gpipe activations L8 batch5",
    "pp2 zero_bubble activations L8 file",
    "tp2 sp activations L5 micro3",
    // three
    "pp3 1f1b batch2",
    "pp3 v2 L8 batch7 full",
    "pp3 zero_bubble dropout",
    "dp3 zero2 batch7 micro2",
    "dp3 zero3 selective batch10",
    // four
    "tp4 sp",
    "tp4 full host",
    "pp4 1f1b batch3",
    "pp4 v2 L8 batch6",
    "pp4 gpipe full every2 L8",
    "pp4 1f1b split0,3,1,0 zero3 batch5",
    "pp2 v2 split0,1,2,1 dp2 zero1",
    "tp2 pp2 zero_bubble host",
    "tp2 sp pp2 v2 selective dropout",
    "tp2 dp2 zero1",
    "tp2 sp dp2 zero2 batch9",
    "tp2 sp dp2 zero3 full",
    "pp2 dp2 zero2",
    "pp2 v2 dp2 zero3 selective",
    "pp2 zero_bubble dp2 zero1 micro2 batch9",
    "dp4 zero1 group2",
    "dp4 zero3 group2 host",
    "dp4 zero2 det",
    "pp2 dp2 zero3 optimizer,parameters",
    "tp2 sp pp2 zero_bubble activations selective L8 dropout",
    "pp2 v2 dp2 zero2 activations L8 batch9 host",
    "pp4 1f1b activations full L8 file",
    // six
    "tp2 pp3 L5 batch5",
    "tp2 sp dp3 zero3 batch10",
    "pp3 dp2 zero1 full",
    "pp3 v2 dp2 zero2 L8 det batch9",
    "pp6 L8 zero_bubble",
    // eight
    "tp2 sp pp2 dp2",
    "tp2 sp pp2 dp2 zero1 dropout",
    "tp2 pp2 dp2 zero2 selective host",
    "tp2 sp pp2 v2 dp2 zero3 full",
    "tp2 pp2 zero_bubble dp2 zero1",
    "tp4 sp dp2 zero2 batch9",
    "pp4 v2 L8 dp2 zero1 batch10",
    "dp8 zero3 group4 batch17",
    "tp4 sp pp2 gpipe full host",
    "tp2 sp pp2 v2 dp2 zero3 full every2 L8 optimizer,parameters,activations batch9",
    // twelve
    "tp2 sp pp3 dp2 zero3 L5",
    "tp4 pp3 v2 L8 selective",
    "tp2 dp6 zero2 group3 batch13",
    // sixteen
    "tp2 sp pp4 dp2 zero1",
    "tp2 pp2 dp4 zero3 group2 full",
    "tp4 sp pp2 v2 dp2 zero2",
    "dp16 zero3 batch17",
    "pp4 v2 L8 dp4 zero3 selective batch9",
    // sixty-four
    "tp4 sp pp4 dp4 zero1",
    "tp2 sp pp4 v2 L8 dp8 zero2 group4 selective batch17",
    "tp4 pp2 dp8 zero3 group4 full batch9",
    // sequences spread over ranks: two to sixteen, and sixty-four
    "cp2",
    "cp2 zero2 micro3 host",
    "cp2 zero3 full every2 dropout batch5",
    "cp2 llama host",
    "cp3 T24 selective",
    "cp4 zero1 host dropout",
    "cp2 dp2 zero3 group2 batch5",
    "tp2 cp2 sp full",
    "cp2 pp2 zero_bubble host batch5",
    "cp2 pp2 v2 dropout",
    "cp2 dp2 mpt zero1 full host",
    "cp2 pp3 gpipe full batch2",
    "cp8 micro2 zero2",
    "tp2 sp cp2 pp2 zero1 selective dropout",
    "tp2 cp4 T32 zero3 optimizer,parameters",
    "cp3 pp2 dp2 T12 zero2 batch5",
    "tp2 sp cp2 pp2 v2 dp2 zero3 full host batch5",
    "cp4 pp2 zero_bubble dp2 zero1 dropout",
    "tp4 sp cp4 T64 dp4 zero2 batch5",
};

// In other types.
const char* const table_fp64[] = {
    "tp2 sp fp64",
    "pp2 v2 batch5 fp64 dropout",
    "dp2 zero3 full fp64",
    "tp2 sp pp2 v2 selective fp64 batch5",
    "tp2 dp2 zero2 group2 fp64 dropout",
    "pp4 zero_bubble fp64",
    "tp2 sp pp2 dp2 zero3 full every2 fp64 batch9",
    "tp2 pp2 zero_bubble dp2 zero1 fp64 dropout batch9",
    "tp2 sp pp2 dp4 zero2 group2 fp64 batch9",
    "cp2 micro3 fp64 dropout",
    "cp4 fp64 full zero3",
    "tp2 sp cp2 pp2 zero_bubble fp64 dropout",
    "tp2 cp4 dp2 zero2 fp64",
};
const char* const table_bf16[] = {
    "tp2 sp bf16 host",
    "pp2 v2 bf16 host batch5",
    "dp2 zero3 bf16 host optimizer",
    "dp2 zero1 bf16 host",
    "tp4 pp2 full bf16 host",
    "tp2 pp2 dp2 zero2 selective bf16 host",
    "tp2 sp pp2 zero_bubble bf16 host",
    "tp2 sp pp4 dp2 zero1 bf16 host",
    // one rank, then ZeRO 0 to 3, of parameters kept in fp32 and of pure bf16
    "bf16 host w32 r16",
    "bf16 host r16 o16 nomaster",
    "dp2 bf16 host w32 r16 optimizer,parameters file",
    "dp2 zero1 bf16 host r16 o16",
    "dp2 zero2 bf16 host w32 o16 full",
    "dp2 zero3 bf16 host w32 r16 parameters",
    "dp2 bf16 host r16 o16 nomaster selective",
    "dp2 zero1 bf16 host r16 nomaster batch7",
    "dp2 zero2 bf16 host r16 o16 nomaster optimizer",
    "dp2 zero3 bf16 host r16 o16 nomaster optimizer,parameters",
    "pp2 zero_bubble bf16 host r16 o16 nomaster",
    "pp2 v2 bf16 host w32 r16 batch5",
    "tp2 sp dp2 zero2 bf16 host r16 o16 nomaster",
    "tp2 sp pp2 zero_bubble bf16 host w32 r16",
    "dp4 zero3 group2 bf16 host w32 r16 o16",
    "tp2 pp2 dp2 zero3 bf16 host r16 nomaster full",
    "cp2 bf16 host",
    "cp2 zero2 bf16 host r16 o16 nomaster",
    "cp4 zero3 full bf16 host",
    "tp2 sp cp2 pp2 selective bf16 host",
};

const char* const table_fp16[] = {
    "fp16 host r16 nomaster",
    "fp16 host w32 full micro2",
    "tp2 sp fp16 host",
    "pp2 v2 fp16 host batch5",
    "dp2 zero3 fp16 host optimizer,parameters",
    "dp2 fp16 host optimizer,parameters file",
    "dp2 zero2 fp16 host r16 full",
    "cp2 zero1 fp16 host",
    "bert tp2 sp fp16 host",
    "llama pp2 zero_bubble fp16 host",
    "tp2 sp pp2 dp2 zero3 selective fp16 host r16",
    "tp2 cp2 fp16 host w32",
};

// With fp8 copies of numbers in double precision, and of bf16.
const char* const table_fp8_of_fp64[] = {
    "fp8 full every2",
    "fp8 optimizer,parameters file",
    "tp2 sp fp8",
    "tp2 fp8 dropout selective",
    "pp2 v2 batch5 fp8 dropout",
    "pp2 zero_bubble fp8",
    "dp2 zero1 fp8 batch7",
    "dp2 zero2 selective fp8",
    "dp2 zero3 full fp8 batch9",
    "cp2 fp8 dropout",
    "cp2 zero2 llama fp8",
    "llama tp2 sp fp8",
    "bert tp2 sp fp8 micro3",
    "mpt alibi nobias dp2 zero3 fp8",
    "tp2 sp dp2 zero3 full fp8 batch9",
    "tp2 cp2 fp8 zero1",
    "pp4 split0,3,1,0 fp8",
    "tp2 sp pp2 v2 dp2 zero1 fp8 batch9",
};
const char* const table_fp8_of_bf16[] = {
    "fp8 host",
    "fp8 host selective batch5",
    "tp2 sp fp8 host",
    "pp2 zero_bubble fp8 host",
    "pp2 v2 full fp8 host",
    "dp2 zero1 fp8 host batch9",
    "dp2 zero2 fp8 host r16 optimizer",
    "dp2 zero3 full fp8 host w32",
    "dp2 zero3 fp8 host parameters",
    "cp2 fp8 host",
    "llama tp2 fp8 host",
    "tp2 sp dp2 zero2 selective fp8 host",
    "tp2 sp pp2 dp2 zero1 fp8 host",
};

// The other families, in single precision.
const char* const table_of_families[] = {
    "mpt alibi full",
    "mpt nobias selective dropout host",
    "llama full every2",
    "llama selective host",
    "llama dropout optimizer,parameters host",
    "bert full every2 dropout",
    "bert selective micro3 host",
    "bert padded micro3 host batch7",
    // two ranks
    "mpt alibi nobias tp2 sp host",
    "mpt nobias dp2 zero3 full",
    "mpt alibi pp2 gpipe dropout",
    "llama tp2",
    "llama tp2 sp selective host",
    "llama pp2 gpipe batch5",
    "llama pp2 1f1b full host",
    "llama pp2 zero_bubble selective",
    "llama pp2 v2 batch5",
    "llama dp2 batch7 micro2 dropout",
    "llama dp2 zero1 host",
    "llama dp2 zero2 full",
    "llama dp2 zero3 optimizer,parameters host batch9",
    "bert tp2 dropout",
    "bert tp2 sp host",
    "bert tp2 sp selective micro3 batch7",
    "bert pp2 gpipe batch5",
    "bert pp2 1f1b full host",
    "bert pp2 zero_bubble selective",
    "bert pp2 v2 batch5",
    "bert dp2 batch7 micro2 dropout",
    "bert dp2 zero1 host",
    "bert dp2 zero2 full",
    "bert dp2 zero3 optimizer,parameters host batch9",
    "bert padded tp2 sp host micro3 batch7",
    "bert padded pp2 v2 full batch5",
    "bert padded pp2 zero_bubble dropout",
    "bert padded dp2 zero3 host batch7 micro2",
    // four
    "mpt alibi nobias tp2 sp pp2 v2 selective",
    "mpt alibi tp2 dp2 zero2 full batch9",
    "mpt nobias pp2 zero_bubble dp2 zero1",
    "llama kv4 tp4 sp",
    "llama tp2 sp pp2 zero_bubble",
    "llama tp2 sp dp2 zero3 full batch9",
    "llama pp2 v2 dp2 zero3 selective",
    "llama dp4 zero2 group2 det",
    "llama tp2 pp2 v2 L5 full",
    "bert tp4 sp micro3 batch7",
    "bert tp2 sp pp2 zero_bubble host",
    "bert tp2 sp dp2 zero3 full batch9",
    "bert tp2 pp2 v2 selective dropout",
    "bert dp4 zero2 group2 det",
    "bert padded tp2 sp pp2 zero_bubble micro3 batch7",
    "bert padded pp4 1f1b full host batch6",
    // eight
    "mpt alibi nobias tp2 sp pp2 dp2 zero1",
    "llama tp2 sp pp2 v2 dp2 zero3 full",
    "llama tp2 pp2 zero_bubble dp2 zero1 dropout host",
    "bert tp2 sp pp2 v2 dp2 zero3 full",
    "bert tp2 sp pp2 zero_bubble dp2 zero1",
};
const char* const table_of_families_fp64[] = {
    "mpt alibi nobias tp2 sp pp2 selective fp64 batch5",
    "mpt alibi dp2 zero3 full fp64",
    "llama fp64 full",
    "llama tp2 sp fp64",
    "llama pp2 v2 batch5 fp64 dropout",
    "llama tp2 sp pp2 dp2 zero3 full every2 fp64 batch9",
    "llama tp2 pp2 zero_bubble fp64",
    "bert tp2 sp fp64 micro3",
    "bert pp2 v2 batch5 fp64 dropout",
    "bert tp2 sp pp2 dp2 zero3 full every2 fp64 batch9",
    "bert tp4 sp zero1 fp64 micro2",
    "bert padded tp2 sp pp2 fp64 micro3 batch7",
    "bert padded dp2 zero2 full fp64 batch9",
};
const char* const table_of_families_bf16[] = {
    "mpt alibi nobias tp2 sp bf16 host", "llama tp2 sp bf16 host",
    "llama pp2 v2 dp2 zero3 bf16 host",  "bert tp2 sp bf16 host",
    "bert padded dp2 bf16 host batch7",
};

// Decompositions without a ZeRO stage, which is added.
const char* const table_of_stages[] = {
    "dp2 det batch9",
    "dp2 det full dropout",
    "tp2 sp dp2 det batch9 host",
    "pp2 dp2 det batch9",
    "dp4 group2 det batch10",
    "tp2 pp2 dp2 det",
    "tp2 sp pp2 v2 dp4 det",
    "dp2 det bf16 host r16 o16 nomaster batch9",
    "dp2 det bf16 host w32 r16 batch9",
    "tp2 sp pp2 dp2 det bf16 host r16 full",
    "dp2 det fp16 host batch9",
    "pp2 dp2 det fp16 host r16 optimizer",
    "cp2 dp2 det batch5",
};

TEST(Equivalence, OfTheTable) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& m : combinations_of(table, world.size()))
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
  std::vector<SmallModel> models = combinations_of(table_fp64, world.size());
  for (const SmallModel& m : combinations_of(table_of_families_fp64, world.size()))
    models.push_back(m);
  for (const SmallModel& m : models) {
    SCOPED_TRACE(name_of(m));
    const Trained all = train_decomposed(m, steps, &world);
    check_ranks(world, m, all);
    if (world.rank() != 0) continue;
    const Trained& one = one_rank(m, "fp64", "ref", steps);
    EXPECT_LT(largest_difference(all.losses, one.losses), 1e-12);
    EXPECT_LT(largest_difference(all.grad_norms, one.grad_norms), 1e-12);
    for (size_t t = 0; t < one.gradients.size(); ++t)
      EXPECT_LE(distance_to(all.gradients[t], one.gradients[t]), 1e-12 * norm(one.gradients))
          << one.tensors[t];
  }
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
  for (const SmallModel& m : combinations_of(table_fp8_of_fp64, world.size())) {
    SCOPED_TRACE(name_of(m));
    const Trained all = train_decomposed(m, steps, &world);
    check_ranks(world, m, all);
    if (world.rank() != 0) continue;
    const Trained& one = one_rank(m, "fp8", "ref", steps);
    EXPECT_LT(largest_difference(all.losses, one.losses), 1e-12);
    EXPECT_LT(largest_difference(all.grad_norms, one.grad_norms), 1e-11);
    for (size_t t = 0; t < one.gradients.size(); ++t)
      EXPECT_LE(distance_to(all.gradients[t], one.gradients[t]), 1e-12 * norm(one.gradients))
          << one.tensors[t];
  }
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
