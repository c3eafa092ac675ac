#include "cuda/tuning_cache.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/gemm_description.h"
#include "selections_failure.h"

namespace gptbench {
namespace {

GemmSelections two_selections() {
  GemmSelections selections;
  selections.library = "cuBLASLt 13.1.0 on NVIDIA H200";
  GemmSelection first;
  first.algorithm = {1, 0xffffffffffffffffull, 3, 4, 5, 6, 7, 0x8000000000000000ull};
  first.time_us = 12.5;
  first.tried = 16;
  selections.by_key[{GemmOp::forward, DType::bf16, 8192, 768, 3072, true}] = first;
  GemmSelection second;
  second.fused = true;
  selections.by_key[{GemmOp::backward_weight, DType::f32, 1, 2, 3, true}] = second;
  return selections;
}

}  // namespace

TEST(GemmSelections, TextAndBack) {
  const GemmSelections selections = two_selections();
  GemmSelections read;
  read.library = selections.library;
  read.add("device=something else\n" + selections.text());
  EXPECT_EQ(read.text(), selections.text());
  EXPECT_EQ(read.by_key.size(), 2u);
  const GemmSelection& first =
      read.by_key.at({GemmOp::forward, DType::bf16, 8192, 768, 3072, true});
  EXPECT_EQ(first.algorithm[1], 0xffffffffffffffffull);
  EXPECT_EQ(first.algorithm[7], 0x8000000000000000ull);
  EXPECT_EQ(first.tried, 16);
}

TEST(GemmSelections, WhatIsThereStays) {
  GemmSelections selections = two_selections();
  GemmSelections other = two_selections();
  for (auto& [key, selection] : other.by_key) selection.tried = 99;
  other.by_key[{GemmOp::forward, DType::bf16, 1, 1, 1, false}] = {};
  selections.add(other.text());
  EXPECT_EQ(selections.by_key.size(), 3u);
  for (const auto& [key, selection] : selections.by_key)
    EXPECT_NE(selection.tried, 99) << text_of(key);
}

// That of run.algorithms, or of a rank with another GPU, whose selections all ranks take.
TEST(GemmSelections, AnotherLibraryIsRefused) {
  const std::string text =
      failure(two_selections(), "gemm_library=cuBLASLt 12.9.1 on NVIDIA A100\n");
  EXPECT_NE(text.find("cuBLASLt 12.9.1 on NVIDIA A100"), std::string::npos) << text;
  EXPECT_NE(text.find("run.algorithms = ''"), std::string::npos) << text;
  EXPECT_NE(text.find("of one kind on all ranks"), std::string::npos) << text;
}

TEST(GemmSelections, DamagedLinesAreRefused) {
  const std::string good = two_selections().text();
  const std::string line = good.substr(good.find("gemm.linear_forward"));
  EXPECT_EQ(failure(GemmSelections(), line), "accepted");
  EXPECT_NE(failure(GemmSelections(), line.substr(0, 90)).find("not a selected GEMM algorithm"),
            std::string::npos);
  for (const char* key : {"gemm.linear_sideways.R1.K1.N1.f32=", "gemm.linear_forward.R1.K1.f32=",
                          "gemm.linear_forward.R-1.K1.N1.f32=", "gemm.linear_forward.R1.K1.N1.i32=",
                          "gemm.linear_forward.R1.K1.N1.f32.sparse=",
                          "gemm.linear_forward.R99999999999999999999.K1.N1.f32="})
    EXPECT_NE(
        failure(GemmSelections(), key + line.substr(line.find('=') + 1)).find("names no GEMM"),
        std::string::npos)
        << key;
}

TEST(TimedSearch, TheFastestAlgorithmIsSelected) {
  EXPECT_TRUE(is_faster(12.5, 0.0));  // the first one
  EXPECT_TRUE(is_faster(12.25, 12.5));
  EXPECT_FALSE(is_faster(12.75, 12.5));
  EXPECT_FALSE(is_faster(12.5, 12.5));
}

}  // namespace gptbench
