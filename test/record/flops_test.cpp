#include "record/flops.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

// A step of 300 FLOPs whose forward pass, a third, is done again: 400. The convention `megatron`
// is published with those (k = 4), the others without; by operations less was repeated.
TEST(Flops, RecomputationIsCountedOnce) {
  Summary s;
  s.flops.hardware_factor = 4.0 / 3.0;
  s.flops.per_step = {
      {"mpt", 300.0}, {"megatron", 400.0}, {"exact", 300.0}, {"exact_recomputed", 90.0}};
  EXPECT_DOUBLE_EQ(model_flops(s, "mpt"), 300.0);
  EXPECT_DOUBLE_EQ(hardware_flops(s, "mpt"), 400.0);
  EXPECT_DOUBLE_EQ(model_flops(s, "megatron"), 300.0);
  EXPECT_DOUBLE_EQ(hardware_flops(s, "megatron"), 400.0);
  EXPECT_DOUBLE_EQ(model_flops(s, "exact"), 300.0);
  EXPECT_DOUBLE_EQ(hardware_flops(s, "exact"), 390.0);
  EXPECT_DOUBLE_EQ(model_flops(s, "causal"), 0.0);
  EXPECT_DOUBLE_EQ(hardware_flops(s, "causal"), 0.0);
  s.flops.hardware_factor = 0.0;  // not known
  EXPECT_DOUBLE_EQ(model_flops(s, "megatron"), 400.0);
  EXPECT_DOUBLE_EQ(hardware_flops(s, "mpt"), 300.0);
}

// Products of fp8 factors as a share of what was executed, recomputation included.
TEST(Flops, ShareOfFp8) {
  Summary s;
  EXPECT_EQ(fp8_share(s), 0.0);
  s.flops.per_step = {{"exact", 300.0}, {"exact_recomputed", 100.0}};
  EXPECT_EQ(fp8_share(s), 0.0);
  s.flops.per_step["exact_fp8"] = 240.0;
  EXPECT_DOUBLE_EQ(fp8_share(s), 0.6);
  EXPECT_TRUE(is_convention("exact"));
  EXPECT_FALSE(is_convention("exact_fp8"));
  EXPECT_FALSE(is_convention("exact_recomputed"));
}

// Fractions of the peak; just at the peak is possible.
TEST(Flops, UtilisationsThatCannotBe) {
  EXPECT_EQ(impossible_utilisation(0.5, 1.0), "");
  EXPECT_EQ(impossible_utilisation(1.109, 1.2).rfind("WARNING: MFU above 100 %", 0), 0U);
  EXPECT_EQ(impossible_utilisation(0.9, 1.2).rfind("WARNING: HFU above 100 %", 0), 0U);
  // A convention that counts no more than is done leaves the peak.
  EXPECT_EQ(impossible_utilisation(1.1, 1.2, "causal"),
            "WARNING: MFU above 100 %, the peak is too low");
  for (const std::string& text :
       {impossible_utilisation(1.1, 1.1, "mpt"), impossible_utilisation(1.1, 1.1, "exact"),
        impossible_utilisation(0.9, 1.2, "causal")})
    EXPECT_NE(text.find("the convention counts work that is not done, or"), std::string::npos);
  EXPECT_EQ(utilisation_key(1.0, 1.0), "");
  EXPECT_EQ(utilisation_key(1.1, 1.2), " warning=mfu_above_100_percent");
  EXPECT_EQ(utilisation_key(0.9, 1.2), " warning=hfu_above_100_percent");
}

}  // namespace
}  // namespace gptbench
