// The order of the GEMMs that a calibration measures, and the rows that it adds.
#include "calibrate/gemm_cases.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace gptbench {
namespace {

// Takes all cases of a kernel that takes time_s(rows); rows in the order in which they came.
std::vector<int64_t> rows_taken(GemmCases cases, const std::function<double(int64_t)>& time_s) {
  std::vector<int64_t> rows;
  while (const std::optional<GemmCase> next = cases.take()) {
    rows.push_back(next->rows);
    cases.take_times(*next, {time_s(next->rows)}, 0.0);
  }
  return rows;
}

const std::vector<GemmCase> four_rows = {
    {1024, 64, 64}, {256, 64, 64}, {4096, 64, 64}, {512, 64, 64}};

// An algorithm for up to `last` rows that takes twice as long per row as the one for more.
double two_algorithms(int64_t rows, int64_t last) {
  return static_cast<double>(rows) * (rows <= last ? 2e-6 : 1e-6);
}

TEST(GemmCases, ComeByTheirCostAndOnce) {
  GemmCases cases({{8, 8, 8}, {2, 2, 2}, {8, 8, 8}, {4, 4, 4}});
  EXPECT_EQ(cases.size(), 3);
  EXPECT_EQ(cases.take()->rows, 2);
  EXPECT_EQ(cases.take()->rows, 4);
  EXPECT_EQ(cases.take()->rows, 8);
  EXPECT_FALSE(cases.take());
}

// 5 x 8 columns are more than 4 x 8 inner elements: a head, a quarter of whose FLOPs count.
TEST(GemmCases, HeadsComeEarlier) {
  GemmCases cases({{8, 16, 8}, {8, 40, 8}});
  EXPECT_EQ(cases.take()->columns, 40);
  EXPECT_EQ(cases.take()->columns, 16);
}

TEST(GemmCases, RowsBetweenFindWhereTheAlgorithmChanges) {
  const GemmCases cases(four_rows, GemmCases::Rows::and_between);
  // 384 and 320 lie near the geometric means of 256 and 512 and of 256 and 384.
  EXPECT_EQ(rows_taken(cases, [](int64_t rows) { return two_algorithms(rows, 256); }),
            (std::vector<int64_t>{256, 512, 384, 320, 1024, 4096}));
  EXPECT_EQ(rows_taken(cases, [](int64_t rows) { return two_algorithms(rows, 400); }),
            (std::vector<int64_t>{256, 512, 384, 448, 1024, 4096}));
}

TEST(GemmCases, NoRowsAreAddedWhereTimesAreInProportion) {
  const GemmCases cases(four_rows, GemmCases::Rows::and_between);
  // Per row, 1.1 times as fast with each of the greater numbers of rows.
  const auto grows = [](int64_t rows) {
    return static_cast<double>(rows) / (rows <= 256 ? 1.0 : rows <= 512 ? 1.1 : 1.21);
  };
  EXPECT_EQ(rows_taken(cases, grows), (std::vector<int64_t>{256, 512, 1024, 4096}));
}

// A deck says which rows there are.
TEST(GemmCases, NoRowsAreAddedToThoseOfADeck) {
  EXPECT_EQ(
      rows_taken(GemmCases(four_rows), [](int64_t rows) { return two_algorithms(rows, 256); }),
      (std::vector<int64_t>{256, 512, 1024, 4096}));
}

TEST(GemmCases, EachKernelAndEachLayerCounts) {
  GemmCases cases({{256, 64, 64}, {512, 64, 64}, {256, 65, 64}, {512, 65, 64}},
                  GemmCases::Rows::and_between);
  EXPECT_EQ(cases.take_times({256, 64, 64}, {1.0, 2.0}, 0.0), 0);
  EXPECT_EQ(cases.take_times({512, 65, 64}, {1.0, 1.0}, 0.0), 0);  // another layer
  EXPECT_EQ(cases.take_times({512, 64, 64}, {2.0, 2.0}, 0.0), 1);  // the second kernel
  EXPECT_EQ(cases.size(), 5);
}

// Both numbers of rows take as long as a launch.
TEST(GemmCases, KernelsAsShortAsALaunchDoNotCount) {
  GemmCases cases({{256, 64, 64}, {512, 64, 64}}, GemmCases::Rows::and_between);
  EXPECT_EQ(cases.take_times({256, 64, 64}, {1.0}, 1.5), 0);
  EXPECT_EQ(cases.take_times({512, 64, 64}, {1.0}, 1.5), 0);
}

// Every layer is measured with all four numbers of rows; heads are, too.
TEST(GemmCases, DefaultGrid) {
  GemmCases cases = default_gemms();
  std::set<std::tuple<int64_t, int64_t, int64_t>> all;
  while (const std::optional<GemmCase> next = cases.take())
    all.insert({next->rows, next->columns, next->inner});
  for (const int64_t hidden : {256, 384, 640, 1024, 8192})
    for (const int64_t rows : {256, 512, 1024, 4096}) {
      EXPECT_EQ(all.count({rows, 3 * hidden, hidden}), 1u) << rows << " " << hidden;
      EXPECT_EQ(all.count({rows, hidden, 4 * hidden}), 1u) << rows << " " << hidden;
    }
  for (const int64_t hidden : {384, 640, 768}) EXPECT_EQ(all.count({256, 50304, hidden}), 1u);
}

}  // namespace
}  // namespace gptbench
