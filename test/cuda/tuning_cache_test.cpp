#include "cuda/tuning_cache.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "choices_failure.h"
#include "cuda/gemm_description.h"

namespace gptbench {
namespace {

GemmChoices two_choices() {
  GemmChoices choices;
  choices.library = "cuBLASLt 13.1.0 on NVIDIA H200";
  GemmChoice first;
  first.algorithm = {1, 0xffffffffffffffffull, 3, 4, 5, 6, 7, 0x8000000000000000ull};
  first.time_us = 12.5;
  first.tried = 16;
  choices.by_key[{GemmOp::forward, DType::bf16, 8192, 768, 3072, true}] = first;
  GemmChoice second;
  second.fused = true;
  choices.by_key[{GemmOp::backward_weight, DType::f32, 1, 2, 3, true}] = second;
  return choices;
}

}  // namespace

TEST(GemmChoices, TextAndBack) {
  const GemmChoices choices = two_choices();
  GemmChoices read;
  read.library = choices.library;
  read.add("device=something else\n" + choices.text());
  EXPECT_EQ(read.text(), choices.text());
  EXPECT_EQ(read.by_key.size(), 2u);
  const GemmChoice& first = read.by_key.at({GemmOp::forward, DType::bf16, 8192, 768, 3072, true});
  EXPECT_EQ(first.algorithm[1], 0xffffffffffffffffull);
  EXPECT_EQ(first.algorithm[7], 0x8000000000000000ull);
  EXPECT_EQ(first.tried, 16);
}

TEST(GemmChoices, WhatIsThereStays) {
  GemmChoices choices = two_choices();
  GemmChoices other = two_choices();
  for (auto& [key, choice] : other.by_key) choice.tried = 99;
  other.by_key[{GemmOp::forward, DType::bf16, 1, 1, 1, false}] = {};
  choices.add(other.text());
  EXPECT_EQ(choices.by_key.size(), 3u);
  for (const auto& [key, choice] : choices.by_key) EXPECT_NE(choice.tried, 99) << text_of(key);
}

TEST(GemmChoices, AnotherLibraryIsRefused) {
  const std::string text = failure(two_choices(), "gemm_library=cuBLASLt 12.9.1 on NVIDIA A100\n");
  EXPECT_NE(text.find("cuBLASLt 12.9.1 on NVIDIA A100"), std::string::npos) << text;
  EXPECT_NE(text.find("run.algorithms = ''"), std::string::npos) << text;
}

TEST(GemmChoices, DamagedLinesAreRefused) {
  const std::string good = two_choices().text();
  const std::string line = good.substr(good.find("gemm.linear_forward"));
  EXPECT_EQ(failure(GemmChoices(), line), "accepted");
  EXPECT_NE(failure(GemmChoices(), line.substr(0, 90)).find("not the algorithm"),
            std::string::npos);
  for (const char* key : {"gemm.linear_sideways.R1.K1.N1.f32=", "gemm.linear_forward.R1.K1.f32=",
                          "gemm.linear_forward.R-1.K1.N1.f32=", "gemm.linear_forward.R1.K1.N1.i32=",
                          "gemm.linear_forward.R1.K1.N1.f32.sparse=",
                          "gemm.linear_forward.R99999999999999999999.K1.N1.f32="})
    EXPECT_NE(failure(GemmChoices(), key + line.substr(line.find('=') + 1))
                  .find("names no matrix product"),
              std::string::npos)
        << key;
}

}  // namespace gptbench
