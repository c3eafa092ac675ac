#include "run/ceiling.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "device/gemm_ceiling.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

// The median of three runs is 100; of what this run measured, 98 deviates more from it than 101
// does, and further than two of the three runs.
TEST(Ceiling, IsTheMedianOfRunsAndItsSpreadThatOfThisRun) {
  const GemmCeiling ceiling = ceiling_of({98.0, 101.0}, {100.0, 90.0});
  EXPECT_EQ(ceiling.tflops, 100.0);
  EXPECT_NEAR(ceiling.spread, 0.02, 1e-12);
}

// This run is the median of five, of which the others are 6 % off or more; of six runs three agree,
// which are not more than half; of five runs three do.
TEST(Ceiling, VariesWhereRunsDisagree) {
  EXPECT_NEAR(ceiling_of({100.0}, {94.0, 106.0, 93.0, 107.0}).spread, 0.06, 1e-12);
  EXPECT_NEAR(ceiling_of({100.0}, {94.0, 106.0, 100.0, 107.0, 100.0}).spread, 0.06, 1e-12);
  EXPECT_EQ(ceiling_of({100.0}, {94.0, 106.0, 100.0, 100.0}).spread, 0.0);
}

// One outlier among earlier runs changes neither.
TEST(Ceiling, AnOutlierIsForgotten) {
  const GemmCeiling ceiling = ceiling_of({100.0, 100.0}, {100.0, 100.0, 30.0, 300.0});
  EXPECT_EQ(ceiling.tflops, 100.0);
  EXPECT_EQ(ceiling.spread, 0.0);
}

// The latest eight of twelve earlier runs count: with this one, five of 2 against four of 1. The
// median over nine earlier runs would be 1.5, over all 1.
TEST(Ceiling, OnlyTheLatestRunsCount) {
  const GemmCeiling ceiling =
      ceiling_of({2.0}, {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0});
  EXPECT_EQ(ceiling.tflops, 2.0);
}

// A rank without memory for the GEMMs leaves no ceiling, whatever earlier runs measured.
TEST(Ceiling, IsNoneWhereItWasNotMeasured) {
  EXPECT_EQ(ceiling_of({0.0}, {100.0}).tflops, 0.0);
  EXPECT_EQ(ceiling_of({100.0, 0.0}, {100.0}).tflops, 0.0);
}

// All columns, and as many rows as the rate depends on.
TEST(Ceiling, GemmsAreThoseOfTheModel) {
  ModelShape shape;
  shape.L = 12;
  shape.C = 768;
  shape.H = shape.H_kv = 12;
  shape.D = 64;
  shape.F = 3072;
  shape.V = 50304;
  const auto sizes = [&](int64_t rows) {
    std::vector<std::array<int64_t, 4>> all;
    for (const GemmShape& gemm : gemms_of(shape, rows))
      all.push_back({gemm.R, gemm.K, gemm.N, gemm.count});
    return all;
  };
  using Sizes = std::vector<std::array<int64_t, 4>>;
  EXPECT_EQ(sizes(1024), (Sizes{{1024, 768, 2304, 12},
                                {1024, 768, 768, 12},
                                {1024, 768, 3072, 12},
                                {1024, 3072, 768, 12},
                                {1024, 768, 50304, 1}}));
  EXPECT_EQ(ceiling_bytes(ComputeType::bf16, gemms_of(shape, 1024)),
            gemm_workspace_bytes + 2 * (1024 * 3072 + 50304 * 768 + 1024 * 50304));
  EXPECT_EQ(sizes(100000)[0], (std::array<int64_t, 4>{16384, 768, 2304, 12}));
}

class Store : public testing::Test {
 protected:
  Store() { setenv("GPTBENCH_CEILINGS", path_.c_str(), 1); }
  ~Store() override {
    unsetenv("GPTBENCH_CEILINGS");
    std::remove(path_.c_str());
  }
  std::string path_ = testing::TempDir() + "ceilings/of_the_test";
};

TEST_F(Store, KeepsTheLatestNineOfEachKey) {
  const CeilingStore store;
  EXPECT_TRUE(store.read("a machine").empty());
  store.add("another", 5.0);
  for (int i = 1; i <= 12; ++i) store.add("a machine", i);
  EXPECT_EQ(store.read("a machine"), (std::vector<double>{4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(store.read("another"), std::vector<double>{5});
  EXPECT_TRUE(store.read("a mach").empty());
}

TEST_F(Store, DamagedLinesAndUnwritableFilesAreNoError) {
  CeilingStore().add("k", 1.0);
  std::ofstream(path_) << "k\tnan -1 0 words 7\nno tab\n";
  EXPECT_EQ(CeilingStore().read("k"), std::vector<double>{7});
  std::ofstream(path_) << "k\t1 2 3 4 5 6 7 8 9 10 11 12\n";
  CeilingStore().add("k", 13.0);
  EXPECT_EQ(CeilingStore().read("k"), (std::vector<double>{5, 6, 7, 8, 9, 10, 11, 12, 13}));
  setenv("GPTBENCH_CEILINGS", "/proc/none/of_these", 1);
  CeilingStore().add("k", 1.0);
  EXPECT_TRUE(CeilingStore().read("k").empty());
  setenv("GPTBENCH_CEILINGS", "none", 1);
  CeilingStore().add("k", 1.0);
  EXPECT_TRUE(CeilingStore().read("k").empty());
}

// A name without a folder is a file of the working directory.
TEST_F(Store, MayBeInTheWorkingDirectory) {
  setenv("GPTBENCH_CEILINGS", "ceilings_here", 1);
  CeilingStore().add("k", 1.0);
  EXPECT_EQ(CeilingStore().read("k"), std::vector<double>{1});
  std::filesystem::remove_all("ceilings_here");
}

// Sets or, with null, unsets a variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(CeilingPath, IsTheCacheOfTheUserOrNone) {
  const std::string folder = testing::TempDir() + "ceiling_path";
  const Variable own("GPTBENCH_CEILINGS", nullptr);
  {
    const Variable cache("XDG_CACHE_HOME", folder.c_str());
    CeilingStore().add("cache", 1.0);
  }
  const Variable no_cache("XDG_CACHE_HOME", nullptr);
  {
    const Variable home("HOME", folder.c_str());
    CeilingStore().add("home", 2.0);
    EXPECT_EQ(CeilingStore().read("home"), std::vector<double>{2});
  }
  EXPECT_TRUE(std::ifstream(folder + "/gptbench/gemm_ceilings").good());
  EXPECT_TRUE(std::ifstream(folder + "/.cache/gptbench/gemm_ceilings").good());
  const Variable no_home("HOME", nullptr);
  CeilingStore().add("k", 1.0);
  EXPECT_TRUE(CeilingStore().read("k").empty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gptbench
