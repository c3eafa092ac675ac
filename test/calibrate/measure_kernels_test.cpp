// The FLOPs and bytes that measured times are divided by, counted by hand.
#include "calibrate/measure_kernels.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "calibrate/time_share.h"
#include "deck/config.h"

namespace gptbench {
namespace {

// Ample time: what finds none is left out, on a busy machine as well.
constexpr double time_s = 1e5;

class Kernels : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    MpiWorld world(nullptr, nullptr);
    const std::unique_ptr<Device> device = make_host_device(DeviceKind::host);
    Calibration result;
    KernelBench bench(world, *device, int64_t{1} << 26, result);
    for (const ComputeType type : {ComputeType::fp32, ComputeType::bf16}) {
      bench.gemms(type, GemmCases({{6, 4, 10}}), time_s);
      bench.attention(type, {{2, 8, 2, 4}, {2, 8, 2, 4, false}}, time_s);
      bench.arrays(type, {6, 4, 8, 2}, time_s);
    }
    bench.fp8_gemms(GemmCases({{6, 4, 10}}), time_s);
    KernelBench(world, *device, int64_t{1} << 16, result).machine(time_s);
    for (const KernelRate& rate : result.kernels) {
      rates_[rate.type + " " + rate.kernel] = rate;
      EXPECT_GT(rate.time_s, 0.0) << rate.kernel;
    }
  }
  static const KernelRate& rate(const std::string& name) { return rates_.at(name); }

  std::unique_ptr<Device> device_ = make_host_device(DeviceKind::host);
  MpiWorld world_{nullptr, nullptr};
  static inline std::map<std::string, KernelRate> rates_;
};

TEST_F(Kernels, Gemms) {
  for (const char* const name :
       {"linear_forward", "linear_backward_input", "linear_backward_weight"})
    EXPECT_EQ(rate(std::string("fp32 ") + name).flops, 2.0 * 6.0 * 4.0 * 10.0) << name;
  // x, y and W once each; gradients of weights are f32, read and written.
  EXPECT_EQ(rate("fp32 linear_forward").bytes, 4.0 * (60.0 + 24.0 + 40.0));
  EXPECT_EQ(rate("bf16 linear_forward").bytes, 2.0 * (60.0 + 24.0 + 40.0));
  EXPECT_EQ(rate("bf16 linear_backward_input").bytes, 2.0 * (60.0 + 24.0 + 40.0));
  EXPECT_EQ(rate("bf16 linear_backward_weight").bytes, 2.0 * (60.0 + 24.0) + 8.0 * 40.0);
}

// Calls of 64 and of 4,096 rows of 4 columns take nearly as long: rows between are measured.
TEST_F(Kernels, RowsBetweenAreMeasured) {
  Calibration result;
  KernelBench bench(world_, *device_, int64_t{1} << 26, result);
  bench.gemms(ComputeType::fp32,
              GemmCases({{64, 4, 4}, {4096, 4, 4}}, GemmCases::Rows::and_between), time_s);
  EXPECT_GT(result.kernels.size(), 6u);
  EXPECT_EQ(result.kernels.size() % 3, 0u);
}

// Factors have one byte per element, results two, gradients of weights four, read and written.
TEST_F(Kernels, GemmsInFp8) {
  for (const char* const name :
       {"linear_forward", "linear_backward_input", "linear_backward_weight"})
    EXPECT_EQ(rate(std::string("fp8 ") + name).flops, 2.0 * 6.0 * 4.0 * 10.0) << name;
  EXPECT_EQ(rate("fp8 linear_forward").bytes, 60.0 + 40.0 + 2.0 * 24.0);
  EXPECT_EQ(rate("fp8 linear_backward_input").bytes, 24.0 + 40.0 + 2.0 * 60.0);
  EXPECT_EQ(rate("fp8 linear_backward_weight").bytes, 24.0 + 60.0 + 8.0 * 40.0);
  // Result [rows, columns] and inner dimension.
  const KernelRate& weight = rate("fp8 linear_backward_weight");
  EXPECT_EQ(std::tuple(weight.rows, weight.columns, weight.inner), std::tuple(4, 10, 6));
}

// 1,024 rows of 64 columns take 1.8 MB in f32; there is room for 64 KiB.
TEST_F(Kernels, ArraysFitTheRoom) {
  Calibration result;
  KernelBench bench(world_, *device_, int64_t{1} << 16, result);
  bench.arrays(ComputeType::fp32, {1024, 64, 128}, time_s);
  ASSERT_FALSE(result.kernels.empty());
  EXPECT_EQ(result.kernels.front().kernel, "layernorm_forward");
  EXPECT_EQ(result.kernels.front().rows, 32);
  EXPECT_EQ(result.kernels.front().columns, 64);
}

// A call that sleeps takes no less; how much more depends on the machine.
TEST_F(Kernels, TimeAndSpreadOfACall) {
  const std::unique_ptr<Queue> queue = device_->make_queue("test");
  TimeShare share(world_, 1e-3, 1);
  const std::optional<CallTime> time = share.time(
      *queue, [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }, true);
  ASSERT_TRUE(time);
  EXPECT_GE(time->time_s, 0.1);
  EXPECT_GT(time->spread, 0.0);
}

// What prepares a call counts for no time, and comes before every call.
TEST_F(Kernels, PreparationIsNotTimed) {
  const std::unique_ptr<Queue> queue = device_->make_queue("test");
  TimeShare share(world_, 1e-3, 1);
  int prepared = 0, called = 0;
  const std::optional<CallTime> time = share.time(
      *queue, [&] { EXPECT_EQ(++called, prepared); }, true,
      [&] {
        ++prepared;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      });
  ASSERT_TRUE(time);
  EXPECT_LT(time->time_s, 0.2);
  EXPECT_GE(called, 4);  // one warms up, three are samples
}

TEST_F(Kernels, TwoSamplesOfALongCallAreEnough) {
  const std::unique_ptr<Queue> queue = device_->make_queue("test");
  TimeShare share(world_, 1e-3, 1);
  int called = 0;
  const auto call = [&] {
    ++called;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  ASSERT_TRUE(share.time(*queue, call, true));
  EXPECT_EQ(called, 3);  // one warms up
}

// A round is many GEMMs, and all rounds fill the time; without time there are none.
TEST_F(Kernels, RoundsOfManyGemms) {
  Calibration result;
  KernelBench bench(world_, *device_, int64_t{1} << 26, result);
  const LeftOut none = bench.rounds(ComputeType::fp32, 1e-6);
  EXPECT_TRUE(result.empty());
  EXPECT_EQ(none.items, 1);
  EXPECT_GT(none.time_s, 1e-6);
  EXPECT_EQ(bench.rounds(ComputeType::fp32, 100.0 * none.time_s).items, 0);  // 400 calls
  ASSERT_EQ(result.kernels.size(), 1u);
  const KernelRate& round = result.kernels.front();
  EXPECT_EQ(round.kernel, round_of_gemms);
  const double gemms = round.flops / (2.0 * 256.0 * 768.0 * 768.0);
  EXPECT_EQ(gemms, std::round(gemms));
  EXPECT_GE(gemms, 2.0);
  EXPECT_GT(round.spread, 0.0);
}

// What is left out takes as long as its work in the fastest measurement, four calls of each.
TEST_F(Kernels, WhatFindsNoTimeHasAnEstimate) {
  const std::unique_ptr<Queue> queue = device_->make_queue("test");
  TimeShare share(world_, 0.0, 3);
  EXPECT_EQ(share.left_out().items, 0);
  const auto call = [] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); };
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(share.time(*queue, call, true, nullptr, 2.0));
  const std::chrono::duration<double> measured_s = std::chrono::steady_clock::now() - begin;
  EXPECT_FALSE(share.time(*queue, call, true, nullptr, 6.0));
  share.leave_out(1, 0.0);
  EXPECT_EQ(share.left_out().items, 2);
  EXPECT_GE(share.left_out().time_s, 4 * 0.03);
  EXPECT_LE(share.left_out().time_s, 4 * 3 * measured_s.count());  // more calls than one
}

// Two products of all positions with all, of two sequences; q, k, v and the result.
TEST_F(Kernels, Attention) {
  EXPECT_EQ(rate("fp32 attention_forward").flops, 2 * 4.0 * 8.0 * 8.0 * 8.0);
  EXPECT_EQ(rate("fp32 attention_backward").flops, 2 * 8.0 * 8.0 * 8.0 * 8.0);
  EXPECT_EQ(rate("bf16 attention_forward").bytes, 2 * 2.0 * 8.0 * 4.0 * 8.0);
  EXPECT_EQ(rate("bf16 attention_backward").bytes, 2 * 4.0 * 8.0 * 4.0 * 8.0);
  for (const char* const name : {"fp32 attention_forward", "fp32 attention_backward"})
    EXPECT_EQ(rate(std::string(name) + without_mask).flops, rate(name).flops) << name;
}

// Three products, two passes of attention, three products in fp8 where there is room for nothing.
TEST_F(Kernels, WhatHasNoRoomIsCounted) {
  Calibration nothing;
  KernelBench bench(world_, *device_, 0, nothing);
  LeftOut all = bench.gemms(ComputeType::fp32, GemmCases({{6, 4, 10}}), time_s);
  EXPECT_EQ(all.items, 3);
  all += bench.attention(ComputeType::fp32, {{1, 8, 2, 4}}, time_s);
  EXPECT_EQ(all.items, 5);
  all += bench.fp8_gemms(GemmCases({{6, 4, 10}}), time_s);
  EXPECT_EQ(all.items, 8);
  all += bench.rounds(ComputeType::fp32, time_s);
  EXPECT_EQ(all.items, 9);
  EXPECT_EQ(all.time_s, 0.0);  // more time would not help
  EXPECT_TRUE(nothing.kernels.empty());
}

// Four rows of 1,024 columns have room in 64 KiB: two arrays are read, one is written, all of f32.
TEST_F(Kernels, Triad) {
  EXPECT_EQ(rate("fp32 triad").rows, 4);
  EXPECT_EQ(rate("fp32 triad").bytes, 4.0 * 1024.0 * 3.0 * 4.0);
  EXPECT_EQ(rate("fp32 launch").bytes, 0.0);
  EXPECT_EQ(rates_.count("fp32 host_triad"), 0u);  // the host has no other memory
}

// Arrays of 24 elements; 24 / 8 rows of logits, 24 elements as well.
TEST_F(Kernels, Arrays) {
  const std::map<std::string, double> passes = {{"layernorm_forward", 2.0},
                                                {"layernorm_backward", 4.0},
                                                {"rmsnorm_forward", 2.0},
                                                {"rmsnorm_backward", 4.0},
                                                {"gelu_forward", 2.0},
                                                {"gelu_backward", 3.0},
                                                {"swiglu_forward", 1.5},
                                                {"swiglu_backward", 2.5},
                                                {"rotary", 2.0},
                                                {"residual_forward", 3.0},
                                                {"cross_entropy_statistics", 1.0},
                                                {"cross_entropy_finish", 2.0}};
  for (const auto& [name, count] : passes) {
    EXPECT_EQ(rate("fp32 " + name).bytes, 24.0 * 4.0 * count) << name;
    EXPECT_EQ(rate("bf16 " + name).bytes, 24.0 * 2.0 * count) << name;
  }
  EXPECT_EQ(rate("bf16 squared_norm").bytes, 24.0 * 4.0);
  // Master weights and moments are read and written, the gradient is read.
  EXPECT_EQ(rate("fp32 adamw").bytes, 24.0 * 28.0);
  EXPECT_EQ(rate("bf16 adamw").bytes, 24.0 * 30.0);
  EXPECT_EQ(rates_.count("bf16 convert"), 0u);  // no factor is of it
}

// With a deck norm, activation and positions are those of its family, and all are counted.
TEST_F(Kernels, ArraysAreThoseOfAFamily) {
  const auto kernels_of = [&](ModelFamily family, double seconds) {
    ModelConfig model;
    model.family = family;
    Calibration result;
    KernelBench bench(world_, *device_, int64_t{1} << 16, result);
    const LeftOut left_out =
        bench.arrays(ComputeType::fp32, {6, 4, 8, 2, family_of(model)}, seconds);
    std::set<std::string> names;
    for (const KernelRate& rate : result.kernels) names.insert(rate.kernel);
    EXPECT_EQ(names.size() + static_cast<size_t>(left_out.items),
              family == ModelFamily::llama ? 10u : 9u);
    return names;
  };
  const std::set<std::string> all_have = {"residual_forward", "cross_entropy_statistics",
                                          "cross_entropy_finish", "squared_norm", "adamw"};
  std::set<std::string> gpt = {"layernorm_forward", "layernorm_backward", "gelu_forward",
                               "gelu_backward"},
                        llama = {"rmsnorm_forward", "rmsnorm_backward", "swiglu_forward",
                                 "swiglu_backward", "rotary"};
  gpt.insert(all_have.begin(), all_have.end());
  llama.insert(all_have.begin(), all_have.end());
  EXPECT_EQ(kernels_of(ModelFamily::gpt, time_s), gpt);
  EXPECT_EQ(kernels_of(ModelFamily::llama, time_s), llama);
  EXPECT_EQ(kernels_of(ModelFamily::llama, 0.0), std::set<std::string>{"rmsnorm_forward"});
}

}  // namespace
}  // namespace gptbench
