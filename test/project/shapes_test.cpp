// Measured shapes: means by hand, text that reads back, mistakes that are named.
#include "project/shapes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "deck/deck.h"
#include "deck/validate.h"
#include "project/clock.h"
#include "project/project.h"

namespace gptbench {
namespace {

MeasuredShapes two_shapes() {
  return {{"linear_forward_fp32", {{100.0, 10.0, 50.0, 2.0}, {400.0, 10.0, 50.0, 8.0}}}};
}

TEST(Shapes, MeasuredOnesHaveTheirOwnFactor) {
  EXPECT_EQ(shape_factor(two_shapes(), "linear_forward_fp32", 100.0, 10.0, 50.0), 2.0);
  EXPECT_EQ(shape_factor(two_shapes(), "linear_forward_fp32", 400.0, 10.0, 50.0), 8.0);
}

TEST(Shapes, OthersAreWeightedByTheSixthPowerOfTheirDistance) {
  const MeasuredShapes by_M = {
      {"attention_forward_fp32", {{100.0, 10.0, 50.0, 2.0}, {400.0, 10.0, 50.0, 8.0}}}};
  // In the middle, in logarithms: sqrt(2 x 8).
  EXPECT_NEAR(shape_factor(by_M, "attention_forward_fp32", 200.0, 10.0, 50.0), 4.0, 1e-12);
  // 800 is three times as far from 100 as from 400: weights 1 and 729.
  EXPECT_NEAR(shape_factor(by_M, "attention_forward_fp32", 800.0, 10.0, 50.0),
              std::exp((std::log(2.0) + 729.0 * std::log(8.0)) / 730.0), 1e-12);
  // Each extent counts: 2 and 2 in M, 3 in N, 5 in K.
  EXPECT_NEAR(shape_factor(by_M, "attention_forward_fp32", 200.0, 30.0, 250.0), 4.0, 1e-12);
  const MeasuredShapes by_extent = {
      {"attention_forward_bf16",
       {{1.0, 1.0, 1.0, 1.0}, {1.0, 4.0, 1.0, 1.0}, {1.0, 1.0, 2.0, 3.0}}}};
  // From (1, 2, 1): ln 2 twice, and sqrt 2 ln 2.
  EXPECT_NEAR(shape_factor(by_extent, "attention_forward_bf16", 1.0, 2.0, 1.0),
              std::exp(0.125 * std::log(3.0) / 2.125), 1e-12);
}

// By hand, with 768 = 3 x 256: the squared distances of a GEMM from two measured ones. The widths
// of a layer are N and K, of the gradient of its weight M and N.
TEST(Shapes, GemmsOfTheSameSmallExtentAndPowersOfTwoAreNear) {
  const double ln2 = std::log(2.0), ln3 = std::log(3.0);
  const auto mean = [](double d2_of_768, double d2_of_1024) {
    const double a = std::pow(d2_of_768, -3.0), b = std::pow(d2_of_1024, -3.0);
    return std::exp(b * std::log(1.8) / (a + b));
  };
  const std::vector<MeasuredShape> two = {{256.0, 768.0, 64.0, 1.0}, {256.0, 1024.0, 64.0, 1.8}};
  const MeasuredShapes shapes = {{"linear_backward_input_fp32", two},
                                 {"linear_backward_weight_fp32", two}};
  const auto factor = [&](double M, double N, double K) {
    return shape_factor(shapes, "linear_backward_input_fp32", M, N, K);
  };
  const auto of_weight = [&](double M, double N, double K) {
    return shape_factor(shapes, "linear_backward_weight_fp32", M, N, K);
  };
  const auto square = [](double x) { return x * x; };
  // The larger extent counts half. The power of two in 2048 counts as 1,024.
  EXPECT_NEAR(factor(256.0, 2048.0, 64.0),
              mean(square((3.0 * ln2 - ln3) / 2.0) + square(2.0 * ln2), square(ln2 / 2.0)), 1e-12);
  EXPECT_NEAR(factor(256.0, 1536.0, 64.0),
              mean(square(ln2 / 2.0) + square(ln2), square((ln3 - ln2) / 2.0) + square(ln2)),
              1e-12);
  // The smaller extent, M or N, counts double. Rows have no power of two.
  const double smaller_768 = square(2.0 * ln2), larger_1024 = square((2.0 * ln2 - ln3) / 2.0);
  EXPECT_NEAR(factor(512.0, 768.0, 64.0),
              mean(smaller_768, larger_1024 + square(2.0 * ln2) + square(2.0 * ln2)), 1e-12);
  EXPECT_NEAR(of_weight(512.0, 768.0, 64.0),
              mean(smaller_768 + square(ln2),
                   larger_1024 + square(2.0 * ln2) + square(2.0 * ln2) + square(ln2)),
              1e-12);
  // The extents of 768 x 128 in their order are those of 256 x 768 but for the smaller one.
  EXPECT_NEAR(
      factor(768.0, 128.0, 64.0),
      mean(square(2.0 * ln2) + square(ln2), square(2.0 * ln2) + larger_1024 + square(3.0 * ln2)),
      1e-12);
  // K counts an eighth; as the width of a layer its power of two counts as well.
  const double of_K = square(ln2 / 8.0);
  EXPECT_NEAR(of_weight(256.0, 768.0, 128.0), mean(of_K, larger_1024 + square(2.0 * ln2) + of_K),
              1e-12);
  EXPECT_NEAR(factor(256.0, 768.0, 128.0),
              mean(of_K + square(ln2), larger_1024 + square(2.0 * ln2) + of_K + square(ln2)),
              1e-12);
}

// A transposed GEMM may have distance 0: its extents and powers of two may be the same.
TEST(Shapes, AMeasuredGemmDiffersFromItsTranspose) {
  const MeasuredShapes shapes = {
      {"linear_forward_fp32", {{768.0, 1280.0, 64.0, 1.0}, {1280.0, 768.0, 64.0, 3.0}}}};
  EXPECT_EQ(shape_factor(shapes, "linear_forward_fp32", 768.0, 1280.0, 64.0), 1.0);
  EXPECT_EQ(shape_factor(shapes, "linear_forward_fp32", 1280.0, 768.0, 64.0), 3.0);
}

// A profile may hold any positive number.
TEST(Shapes, SizesBelowOneHaveAFactor) {
  const MeasuredShapes small = {{"linear_forward_fp32", {{0.5, 0.5, 0.5, 2.0}}}};
  EXPECT_NEAR(shape_factor(small, "linear_forward_fp32", 8.0, 8.0, 8.0), 2.0, 1e-12);
}

TEST(Shapes, WhatWasNotMeasuredFollowsTheModel) {
  EXPECT_EQ(shape_factor(two_shapes(), "linear_forward_bf16", 100.0, 10.0, 50.0), 1.0);
  EXPECT_EQ(shape_factor({}, "linear_forward_fp32", 100.0, 10.0, 50.0), 1.0);
  EXPECT_EQ(shape_factor(two_shapes(), "linear_forward_fp32", 0.0, 10.0, 50.0), 1.0);
}

MeasuredShapes read(const std::string& text) {
  const Source source{"profile"};
  return read_shapes(source, parse_namelist(source, text).at(0));
}
std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "";
}

TEST(Shapes, TextReadsBack) {
  MeasuredShapes shapes = two_shapes();
  shapes["attention_backward_bf16"] = {{1024.0, 64.0, 1024.0, 0.1234}};
  EXPECT_EQ(shapes_text({}), "");
  const MeasuredShapes back = read(shapes_text(shapes));
  ASSERT_EQ(back.size(), 2u);
  for (const auto& [key, own] : shapes) {
    ASSERT_EQ(back.at(key).size(), own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      const MeasuredShape &a = own[i], &b = back.at(key)[i];
      EXPECT_EQ(std::tuple(a.M, a.N, a.K, a.factor), std::tuple(b.M, b.N, b.K, b.factor)) << key;
    }
  }
}

TEST(Shapes, MistakesAreNamed) {
  EXPECT_NE(refusal("&shapes linear_forward = 1 /").find("unknown key 'linear_forward' of &shapes"),
            std::string::npos);
  EXPECT_NE(refusal("&shapes linear_forward_fp32 = 1, 2, 3 /").find("found 3 numbers"),
            std::string::npos);
  EXPECT_NE(refusal("&shapes linear_forward_fp32 = 1, 2, 3, 0 /"), "");
  EXPECT_NE(refusal("&shapes linear_forward_fp32 = 1, 2, , 4, 5 /").find("leaves out"),
            std::string::npos);
  EXPECT_NE(refusal("&shapes linear_forward_fp32 = 4*1 linear_forward_fp32 = 4*2 /"), "");
}

// In a projection the GEMMs and the attention of the measured kernel and type take so many times as
// long, and nothing else does. GEMMs that a device fuses with a GELU are measured without it.
void expect_scaled_kernels(bool fuses) {
  const Deck deck = parse_deck("deck", "&run\n device = 'host'\n/\n", {"precision.compute=bf16"});
  Config config = resolve(deck, 1);
  config.run.comm = CommLibrary::mpi;
  DeviceTraits traits = device_traits(config.run.device);
  traits.fuses = fuses;
  const RankWork rank = work_of(make_plan(config, 1, 0, traits));
  Machine machine = read_machine("a100-80");
  machine.launch_us = 0.0;
  Software software = read_software("gptbench");
  software.operation_us = 0.0;
  const std::vector<double> before = seconds_of(rank, machine, software);
  machine.shapes = {{"linear_backward_input_bf16", {{1.0, 1.0, 1.0, 3.0}}},
                    {"attention_forward_bf16", {{1.0, 1.0, 1.0, 5.0}}},
                    {"linear_forward_bf16", {{1.0, 1.0, 1.0, 2.0}}},
                    {"linear_backward_weight_fp32", {{1.0, 1.0, 1.0, 7.0}}}};
  const std::vector<double> after = seconds_of(rank, machine, software);
  const std::map<OpKind, double> factors = {{OpKind::linear_forward, 2.0},
                                            {OpKind::linear_gelu_forward, 2.0},
                                            {OpKind::linear_backward_input, 3.0},
                                            {OpKind::linear_gelu_backward_input, 3.0},
                                            {OpKind::attention_forward, 5.0}};
  std::set<OpKind> seen;
  for (size_t i = 0; i < before.size(); ++i) {
    const OpKind op = rank.works[i].op;
    const auto found = factors.find(op);
    const double factor = found == factors.end() ? 1.0 : found->second;
    if (factor != 1.0) seen.insert(op);
    EXPECT_NEAR(after[i], factor * before[i], 1e-12 * after[i]) << spec_of(op).name;
  }
  EXPECT_EQ(seen.size(), fuses ? 5u : 3u);
}

TEST(Shapes, ScaleTheirKernelsInAProjection) {
  expect_scaled_kernels(false);
  expect_scaled_kernels(true);
}

// Rates of GEMMs whose factors are rounded to tf32 say nothing of those in fp32, and the other way
// around.
TEST(Shapes, OfTf32AreNotThoseOfFp32) {
  Machine machine = read_machine("a100-80");
  const Software software = read_software("gptbench");
  for (const bool tf32 : {false, true}) {
    const Deck deck = parse_deck("deck", "&run\n device = 'cuda'\n/\n",
                                 {tf32 ? "precision.tf32=.true." : "precision.tf32=.false."});
    const Plan plan = stage_plans(deck, 1, machine, software).at(0);
    const auto step_s = [&](const char* type) {
      machine.shapes = {{std::string("linear_forward_") + type, {{1.0, 1.0, 1.0, 3.0}}}};
      return computing_s(plan, machine, software);
    };
    EXPECT_EQ(step_s(tf32 ? "fp32" : "tf32"), step_s("bf16"));
    EXPECT_GT(step_s(tf32 ? "tf32" : "fp32"), 1.1 * step_s("bf16"));
  }
}

// So do collectives and messages from rank to rank, each by its own name.
TEST(Shapes, ScaleTheirMessagesInAProjection) {
  const Deck deck = parse_deck(
      "deck", "&run\n device = 'host'\n/\n",
      {"parallel.pipeline_parallel=2", "parallel.data_parallel=2", "parallel.zero_stage=1"});
  Config config = resolve(deck, 4);
  config.run.comm = CommLibrary::mpi;
  const RankWork rank = work_of(make_plan(config, 4, 0));
  Machine machine = read_machine("a100-80");
  Software software = read_software("gptbench");
  software.message_us = 0.0;
  const std::vector<double> before = seconds_of(rank, machine, software);
  machine.shapes = {{"all_gather", {{1.0, 1.0, 1.0, 3.0}}}, {"send", {{1.0, 1.0, 1.0, 5.0}}}};
  const std::vector<double> after = seconds_of(rank, machine, software);
  int64_t tripled = 0, fivefold = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const OpKind op = rank.works[i].op;
    const bool passes = op == OpKind::send || op == OpKind::receive;
    const double factor = op == OpKind::all_gather ? 3.0 : passes ? 5.0 : 1.0;
    tripled += factor == 3.0;
    fivefold += factor == 5.0;
    EXPECT_NEAR(after[i], factor * before[i], 1e-12 * after[i]) << spec_of(op).name;
  }
  EXPECT_GT(tripled, 0);
  EXPECT_GT(fivefold, 0);
}

}  // namespace
}  // namespace gptbench
