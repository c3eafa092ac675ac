// Any decomposition trains the model that one rank trains: explicit tables, of which each run
// registers the combinations of its number of ranks, and combinations drawn at random
// (GPTBENCH_TEST_SEED, which is printed).
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>

#include "combination_tables.h"
#include "equivalence_checks.h"

namespace gptbench {
namespace {

constexpr int steps = 5;

// The members of `texts` whose combination has as many ranks as this run. MPI is initialised before
// tests are registered (test/mpi_main.cpp).
template <size_t n>
std::vector<std::string> of_these_ranks(const char* const (&texts)[n]) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<std::string> all;
  for (const char* text : texts)
    if (combination(text).ranks() == ranks) all.push_back(text);
  return all;
}

class Equivalence : public testing::TestWithParam<std::string> {
 protected:
  SmallModel model() const { return combination(GetParam()); }
  MpiWorld world_{nullptr, nullptr};
};

// "tp2 sp fp64" is the test .../tp2_sp_fp64.
std::string name_of_case(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.empty() ? "plain" : info.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

// Some numbers of ranks have no combination of some types.
#define GPTBENCH_OF_TABLE(name, suite, table) \
  INSTANTIATE_TEST_SUITE_P(name, suite, testing::ValuesIn(of_these_ranks(table)), name_of_case)

// Against one reference rank in `compute`, with the bound of the gradient's norm given.
void check_double_precision(MpiWorld& world, const SmallModel& m, const char* compute,
                            double bound_of_norms) {
  SCOPED_TRACE(name_of(m));
  const Trained all = train_decomposed(m, steps, &world);
  check_ranks(world, all);
  if (world.rank() != 0) return;
  const Trained& one = one_rank(m, compute, "ref", steps);
  EXPECT_LT(largest_difference(all.losses, one.losses), 1e-12);
  EXPECT_LT(largest_difference(all.grad_norms, one.grad_norms), bound_of_norms);
  for (size_t t = 0; t < one.gradients.size(); ++t)
    EXPECT_LE(distance_to(all.gradients[t], one.gradients[t]), 1e-12 * norm(one.gradients))
        << one.tensors[t];
  for (size_t t = 0; t < one.weights.size(); ++t)
    EXPECT_LE(distance_of_weights(all, one, t), bound_of_weights(1e-12, steps)) << one.tensors[t];
}

class InSinglePrecision : public Equivalence {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InSinglePrecision);
GPTBENCH_OF_TABLE(Gpt, InSinglePrecision, table_fp32);
GPTBENCH_OF_TABLE(Families, InSinglePrecision, table_of_families);
TEST_P(InSinglePrecision, Trains) {
  check_single_precision(world_, model(), steps);
}

TEST(RandomCombinations, TrainInSinglePrecision) {
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
class InDoublePrecision : public Equivalence {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InDoublePrecision);
GPTBENCH_OF_TABLE(Gpt, InDoublePrecision, table_fp64);
GPTBENCH_OF_TABLE(Families, InDoublePrecision, table_of_families_fp64);
TEST_P(InDoublePrecision, Trains) {
  check_double_precision(world_, model(), "fp64", 1e-12);
}

class InBf16 : public Equivalence {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InBf16);
GPTBENCH_OF_TABLE(Gpt, InBf16, table_bf16);
GPTBENCH_OF_TABLE(Families, InBf16, table_of_families_bf16);
TEST_P(InBf16, Trains) {
  check_half_precision(world_, model(), 0x1p-8);
}

class InFp16 : public Equivalence {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InFp16);
GPTBENCH_OF_TABLE(All, InFp16, table_fp16);
TEST_P(InFp16, Trains) {
  check_half_precision(world_, model(), 0x1p-11);
}

// Copies are functions of numbers that agree to the last bits of double precision, and of scales
// that are powers of two: the same bytes in every decomposition, but for a number that lies within
// 2^-50 of the middle between two fp8 numbers.
class InFp8OfDoublePrecision : public Equivalence {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InFp8OfDoublePrecision);
GPTBENCH_OF_TABLE(All, InFp8OfDoublePrecision, table_fp8_of_fp64);
TEST_P(InFp8OfDoublePrecision, Trains) {
  check_double_precision(world_, model(), "fp8", 1e-11);
}

class InFp8OfBf16 : public Equivalence {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InFp8OfBf16);
GPTBENCH_OF_TABLE(All, InFp8OfBf16, table_fp8_of_bf16);
TEST_P(InFp8OfBf16, Trains) {
  check_fp8_of_bf16(world_, model());
}

class ZeroStages : public Equivalence {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ZeroStages);
GPTBENCH_OF_TABLE(All, ZeroStages, table_of_stages);
TEST_P(ZeroStages, AreIdenticalWhereDeterministic) {
  check_identical_stages(world_, model());
}

template <size_t n>
void expect_registered(const char* const (&texts)[n]) {
  const std::vector<int64_t> registered = {GPTBENCH_REGISTERED_RANKS};
  for (const char* text : texts) {
    const int64_t ranks = combination(text).ranks();
    if (ranks > registered.back()) continue;  // more than the MPI library runs on these cores
    EXPECT_EQ(std::count(registered.begin(), registered.end(), ranks), 1)
        << "no test runs '" << text << "': add " << ranks << " ranks to CMakeLists.txt";
  }
}

TEST(Tables, HaveNoCombinationThatIsNeverTrained) {
  expect_registered(table_fp32);
  expect_registered(table_fp64);
  expect_registered(table_bf16);
  expect_registered(table_fp16);
  expect_registered(table_fp8_of_fp64);
  expect_registered(table_fp8_of_bf16);
  expect_registered(table_of_families);
  expect_registered(table_of_families_fp64);
  expect_registered(table_of_families_bf16);
  expect_registered(table_of_stages);
}

}  // namespace
}  // namespace gptbench
