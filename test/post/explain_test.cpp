// The account of a step against figures worked by hand, of a model small enough for that.
#include "post/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "base/error.h"
#include "io/reduce.h"
#include "made_runs.h"
#include "post/json.h"
#include "record/flops.h"

namespace gptbench {
namespace {

StepAccount account(const Record& record, const std::optional<Machine>& machine = {}) {
  return account_of(record, machine, read_software("gptbench"));
}

const PartOfStep& region(const StepAccount& all, const std::string& name) {
  for (const PartOfStep& each : all.regions)
    if (each.name == name) return each;
  throw std::runtime_error("no region " + name);
}

// FLOPs of a rank: 2 x 4 rows x (8 x 24 + 8 x 8 + 2 x 8 x 32) x 3 = 18432, a tenth of a second at
// 184320 FLOP/s. Means over ranks: 0.25 s in linear layers, 0.7 s in communication, of which the
// other rank waits 0.3 - 0.25 s for the slower one.
TEST(Explain, RegionsFromTheCeilingOfTheRecord) {
  const StepAccount all = account(one_layer_run({0.2, 0.3}));
  ASSERT_EQ(all.regions.size(), 2u);
  const PartOfStep& linear = region(all, "linear");
  EXPECT_EQ(all.regions[0].name, "linear");
  EXPECT_DOUBLE_EQ(linear.time_s, 0.25);
  EXPECT_DOUBLE_EQ(linear.flops, 18432.0);
  EXPECT_DOUBLE_EQ(linear.calls, 12.0);  // four linear layers forward, and two products backward
  EXPECT_NEAR(linear.limit_s, 0.1, 1e-12);
  EXPECT_TRUE(linear.bound_by_flops);
  EXPECT_NEAR(linear.rest_s(), 0.15, 1e-12);
  // Three norms. Forward: x and y of 4 x 8, gamma and beta of 8, mean and rstd of 4: 88 elements.
  // Backward: x and dy, dx added to, gamma, dgamma and dbeta added to, mean and rstd: 176. The dx
  // of the final one is set to 0 before.
  const PartOfStep& norm = region(all, "layernorm");
  EXPECT_EQ(norm.bytes, 4.0 * (3.0 * (88.0 + 176.0) + 32.0));
  EXPECT_EQ(norm.limit_s, 0.0);  // the bandwidth is not known
  EXPECT_NEAR(all.communication_s, 0.7, 1e-12);
  EXPECT_NEAR(all.imbalance_s, 0.05, 1e-12);
  EXPECT_NEAR(all.explained(), 1.0, 1e-12);
  EXPECT_NEAR(account(one_layer_run({0.2, 0.3}, 1.25)).explained(), 0.8, 1e-12);
  // A region that took no time is none.
  Record idle = one_layer_run({0.2, 0.3});
  idle.timing.push_back(idle.timing[0]);
  idle.timing.back().name = "region_optimizer";
  idle.timing.back().values.assign(6, 0.0);
  EXPECT_EQ(account(idle).regions.size(), 2u);
}

// The 0.25 s of linear layers are divided among their operations as the trace's times are, means
// over its ranks; so is the time of LayerNorm, whose limit is not known without a bandwidth.
TEST(Explain, OperationsAsTraced) {
  const Record record = one_layer_run({0.2, 0.3});
  const StepAccount by_limits = account(record);
  EXPECT_FALSE(by_limits.traced);
  TraceFile trace;
  std::map<std::string, double> weights;
  double sum = 0.0;
  for (const OperationTime& each : by_limits.operations) {
    if (each.region != "linear") continue;
    TraceSpan span;
    span.category = "linear";
    span.work = each.name;
    span.end_us = 10.0 * static_cast<double>(weights.size() + 1);
    trace.spans.push_back(span);
    span.rank = 1;
    span.end_us *= 3.0;
    trace.spans.push_back(span);
    weights[each.name] = span.end_us / 30.0;
    sum += weights[each.name];
    span.category = "wait";
    span.end_us = 1e6;
    trace.spans.push_back(span);
  }
  ASSERT_GE(weights.size(), 8U);
  for (const auto& [work, duration_us] :
       {std::pair("layernorm_forward", 20.0), std::pair("layernorm_backward", 60.0)}) {
    TraceSpan span;
    span.category = "layernorm";
    span.work = work;
    span.end_us = duration_us;
    trace.spans.push_back(span);
  }
  const StepAccount traced = account_of(record, {}, read_software("gptbench"), trace);
  EXPECT_TRUE(traced.traced);
  for (const OperationTime& each : traced.operations) {
    if (each.region != "linear") continue;
    EXPECT_NEAR(each.time_s, 0.25 * weights.at(each.name) / sum, 1e-12) << each.name;
  }
  EXPECT_DOUBLE_EQ(region(traced, "linear").time_s, region(by_limits, "linear").time_s);
  std::map<std::string, double> norms;
  for (const OperationTime& each : traced.operations) norms[each.name] += each.time_s;
  EXPECT_GT(norms["layernorm_forward"], 0.0);
  EXPECT_NEAR(norms["layernorm_backward"] / norms["layernorm_forward"], 3.0, 1e-12);
}

// Covered are 0.7 s in communication and 0.1 s of the 0.25 s in linear layers, nothing of
// LayerNorm; of a region that is faster than its limit, 0.05 s of 0.1 s, no more than its time.
TEST(Explain, CoveredIsWhatHasACause) {
  EXPECT_NEAR(account(one_layer_run({0.2, 0.3})).covered(), 0.8, 1e-12);
  EXPECT_NEAR(account(one_layer_run({0.05})).covered(), 0.95, 1e-12);
  const std::string page = explain_page("out/result.h5", one_layer_run({0.2, 0.3}), "");
  EXPECT_NE(page.find("covered   80.0 % by limits"), std::string::npos) << page;
}

// 1,120 elements, padding included: nine copies of 9,040 bytes in all, scalars too; AdamW of a host
// kernel reads gradients, reads and writes three arrays, and reads the clip factor five times. At
// 180,800 bytes per second, and half as many for copies within the memory of a processor.
TEST(Explain, OffloadAndTheOptimizerOnTheHostHaveLimits) {
  Record record = one_layer_run({0.2});
  std::string& deck = record.provenance.deck_resolved;
  for (const auto& [from, to] :
       {std::pair{"offload = 'none'", "offload = 'optimizer'"},
        std::pair{"offload_update = 'device'", "offload_update = 'host'"}}) {
    ASSERT_NE(deck.find(from), std::string::npos) << from << " in\n" << deck;
    deck.replace(deck.find(from), std::strlen(from), to);
  }
  for (const char* const name : {"region_offload", "region_optimizer"}) {
    record.timing.push_back(record.timing[0]);
    record.timing.back().name = name;
  }
  Machine machine = read_machine("a64fx-2.0");
  machine.host_gb_per_s = 180800.0 / 1e9;
  machine.launch_us = 1000.0;
  const auto adamw_s = [](const StepAccount& all) {
    double limit_s = 0.0;
    for (const OperationTime& each : all.operations)
      if (each.name == "adamw") limit_s += each.limit_s;
    return limit_s;
  };
  const StepAccount all = account(record, machine);
  EXPECT_EQ(region(all, "offload").bytes, 9040.0);
  EXPECT_NEAR(region(all, "offload").limit_s, 0.1, 1e-12);
  EXPECT_EQ(region(all, "offload").launch_s, 0.0);  // not on the device
  EXPECT_NEAR(adamw_s(all), (28.0 * 1120.0 + 5.0 * 8.0) / 180800.0, 1e-12);
  // A profile tells nothing of files, and no rate is known without one.
  set_key(record, "parallel", "offload_target", std::string("file"));
  EXPECT_EQ(region(account(record, machine), "offload").limit_s, 0.0);
  EXPECT_EQ(adamw_s(account(record)), 0.0);
}

// A projection says how long computing waits for other stages and for the slowest rank: 0.3 s and
// 0.1 s of 0.75 s.
TEST(Explain, AProjectionKnowsTheBubbleAndTheSlowestRank) {
  Record record = one_layer_run({0.2, 0.2});
  record.projection.machine = "a100-80";
  record.projection.fuses = 0.0;
  for (const auto& [name, time_s] : {std::pair{"bubble", 0.3}, std::pair{"straggler", 0.1}}) {
    record.timing.push_back(record.timing[0]);
    record.timing.back().name = name;
    record.timing.back().values.assign(6, time_s);
  }
  for (RankSeries& series : record.timing) {  // of one stage
    series.values.erase(series.values.begin() + 3, series.values.end());
    series.ranks = 1;
  }
  const StepAccount all = account(record);
  EXPECT_NEAR(all.bubble_s, 0.3, 1e-12);
  EXPECT_NEAR(all.imbalance_s, 0.1, 1e-12);
  EXPECT_NEAR(all.messages_s(), 0.35, 1e-12);
}

// A projection plans as its software fuses, whatever the device of this program does: a host's
// kernels fuse nothing.
TEST(Explain, AProjectionIsPlannedAsItsSoftwareFuses) {
  Record record = one_layer_run({0.2});
  record.projection.machine = "a64fx-2.0";
  const auto calls = [&](const std::string& name) {
    double sum = 0.0;
    for (const OperationTime& each : account(record).operations)
      if (each.name.rfind(name, 0) == 0) sum += each.calls;
    return sum;
  };
  record.projection.fuses = 1.0;
  EXPECT_EQ(calls("linear_gelu_forward"), 1.0);
  EXPECT_EQ(calls("gelu_forward"), 0.0);
  record.projection.fuses = 0.0;
  EXPECT_EQ(calls("linear_gelu_forward"), 0.0);
  EXPECT_EQ(calls("gelu_forward"), 1.0);
  record.projection.fuses.reset();
  EXPECT_THROW(account(record), Error);
}

// Waits along the pipeline axis are half as long as the others: the bubble is a third of the 0.7 s
// in communication. 0.05 s are imbalance.
TEST(Explain, WaitsForPipelineMessagesAreTheBubble) {
  Record record = one_layer_run({0.2, 0.3});
  EXPECT_EQ(account(record).bubble_s, 0.0);
  CommEntry stages = record.comm[0];
  stages.axis = "pipeline";
  stages.op = "send";
  for (double& exposed_s : stages.exposed_s) exposed_s *= 0.5;
  record.comm.push_back(stages);
  const StepAccount all = account(record);
  EXPECT_NEAR(all.bubble_s, 0.7 / 3.0, 1e-12);
  EXPECT_NEAR(all.messages_s(), 0.7 * 2.0 / 3.0 - 0.05, 1e-12);
  EXPECT_NE(explain_page("out/result.h5", record, "").find("  bubble     233.3  23.3 %"),
            std::string::npos);
  // All waits: the bubble has what imbalance leaves.
  record.comm.erase(record.comm.begin());
  EXPECT_NEAR(account(record).bubble_s, 0.65, 1e-12);
  EXPECT_NEAR(account(record).messages_s(), 0.0, 1e-12);
}

// A projection takes just its limit and launches: what rounding leaves is nothing.
TEST(Explain, RoundingIsNoRest) {
  PartOfStep part;
  part.time_s = 0.3;
  part.limit_s = 0.1;
  part.launch_s = 0.2 + 1e-16;
  EXPECT_EQ(part.rest_s(), 0.0);
  part.launch_s = 0.2 - 1e-9;
  EXPECT_NEAR(part.rest_s(), 1e-9, 1e-15);
  part.launch_s = 0.25;  // faster than the ceiling
  EXPECT_NEAR(part.rest_s(), -0.05, 1e-12);
}

// Each region has one short step: medians would be 0.3 s each, 0.9 s of a step of 0.7 s. The last
// step was disturbed.
TEST(Explain, PartsAddUpToAStep) {
  Record r = one_layer_run({0.25}, 0.7);
  r.steps.time_s = {9.0, 0.7, 0.7, 0.7, 5.0};
  const std::vector<std::vector<double>> values = {
      {7.0, 0.1, 0.3, 0.3, 4.4}, {7.0, 0.3, 0.1, 0.3, 0.3}, {7.0, 0.3, 0.3, 0.1, 0.3}};
  for (size_t i = 0; i < values.size(); ++i) {
    r.timing[i].values = values[i];
    r.timing[i].steps = 5;
  }
  const StepAccount all = account(r);
  EXPECT_NEAR(region(all, "layernorm").time_s, 0.2, 1e-12);
  EXPECT_NEAR(region(all, "linear").time_s, 0.2, 1e-12);
  EXPECT_NEAR(all.communication_s, 0.3, 1e-12);
  EXPECT_NEAR(all.explained(), 1.0, 1e-12);
}

// Without a profile a ceiling stands for products in fp8, too.
TEST(Explain, Fp8WithoutAProfile) {
  Record record = one_layer_run({0.2, 0.3});
  std::string& deck = record.provenance.deck_resolved;
  const size_t at = deck.find("compute = 'fp32'");
  ASSERT_NE(at, std::string::npos) << deck;
  deck.replace(at, std::strlen("compute = 'fp32'"), "compute = 'fp8'");
  EXPECT_NEAR(region(account(record), "linear").limit_s, 0.1, 1e-12);
}

// The peak of an fp8 run is that of fp8: 1979 TFLOP/s of an H100. Its GEMMs in bf16 reach at most
// half as much, and a measured ceiling is that of bf16.
TEST(Explain, GemmsInBf16OfAnFp8RunHaveThePeakOfBf16) {
  Record record = one_layer_run({0.2, 0.3});
  std::string& deck = record.provenance.deck_resolved;
  deck.replace(deck.find("compute = 'fp32'"), std::strlen("compute = 'fp32'"), "compute = 'fp8'");
  set_key(record, "run", "device", std::string("cuda"));
  record.summary.device.name = "h100_80gb";
  record.summary.device.clock_ghz = 1.83;
  record.summary.gemm_ceiling.tflops = 0.0;
  record.summary.peak = {1979.0, peak_source::known_device, ""};
  EXPECT_EQ(ceilings_of(record, {}).flops_per_s, 1979e12);  // of an fp32 run
  set_key(record, "precision", "compute", std::string("fp8"));
  EXPECT_EQ(ceilings_of(record, {}).flops_per_s, 989.5e12);
  EXPECT_EQ(ceilings_of(record, {}).fp8_flops_per_s, 1979e12);
  const std::string page = explain_page("out/result.h5", record, "");
  EXPECT_NE(page.find("989.5 TFLOP/s, in fp8"), std::string::npos) << page;
  record.summary.gemm_ceiling.tflops = 700.0;
  EXPECT_EQ(ceilings_of(record, {}).flops_per_s, 700e12);
  record.summary.gemm_ceiling.tflops = 0.0;
  record.summary.device.name = "an unknown one";
  EXPECT_EQ(ceilings_of(record, {}).flops_per_s, 1979e12);
}

// A profile has a rate of its own for products in fp8: 184320 FLOP/s are a tenth of a second.
TEST(Explain, Fp8WithAProfile) {
  Record record = one_layer_run({0.2, 0.3});
  std::string& deck = record.provenance.deck_resolved;
  deck.replace(deck.find("compute = 'fp32'"), std::strlen("compute = 'fp32'"), "compute = 'fp8'");
  set_key(record, "precision", "compute", std::string("fp8"));
  Machine machine = read_machine("h100");
  machine.fp8_efficiency = 184320.0 / machine.peak("fp8");
  EXPECT_NEAR(region(account(record, machine), "linear").limit_s, 0.1, 1e-6);
}

// Two stages of a layer each: the first has the embedding, the last the head, each counted once.
TEST(Explain, EveryStageOfAPipelineOnce) {
  Record record = one_layer_run({0.2, 0.3});
  std::string& deck = record.provenance.deck_resolved;
  for (const auto& [from, to] : {std::pair{"num_layers = 1", "num_layers = 2"},
                                 std::pair{"data_parallel = 2", "data_parallel = 1"},
                                 std::pair{"pipeline_parallel = 1", "pipeline_parallel = 2"}}) {
    ASSERT_NE(deck.find(from), std::string::npos) << from << " in\n" << deck;
    deck.replace(deck.find(from), std::strlen(from), to);
  }
  const StepAccount all = account(record);
  const auto calls = [&](const std::string& name) {
    double sum = 0.0;
    for (const OperationTime& each : all.operations)
      if (each.name.rfind(name, 0) == 0) sum += each.calls;
    return sum;
  };
  EXPECT_EQ(calls("attention_forward"), calls("attention_backward"));
  EXPECT_GT(calls("attention_forward"), 0.0);
  EXPECT_EQ(calls("embedding_forward"), 0.5 * calls("attention_forward"));
}

// A run of one_layer_run() whose ranks are replicas, with so many sequences per step.
Record with_batch(Record record, int64_t sequences) {
  const std::string key = "global_batch_size = ";
  std::string& deck = record.provenance.deck_resolved;
  const size_t at = deck.find(key) + key.size();
  deck.replace(at, deck.find_first_not_of("0123456789", at) - at, std::to_string(sequences));
  return record;
}

// 5 sequences over 2 replicas are 3 and 2, 3 are 2 and 1 with an empty micro-batch: 2.5 and 1.5
// times the 12 calls and 18432 FLOPs of one sequence.
TEST(Explain, SharesOfTheBatchThatDiffer) {
  const Record even = one_layer_run({0.2, 0.2});
  for (const auto& [sequences, mean] : {std::pair{5, 2.5}, std::pair{3, 1.5}, std::pair{4, 2.0}}) {
    const StepAccount all = account(with_batch(even, sequences));
    EXPECT_DOUBLE_EQ(region(all, "linear").calls, 12.0 * mean) << sequences;
    EXPECT_DOUBLE_EQ(region(all, "linear").flops, 18432.0 * mean) << sequences;
    const StepAccount timed = account(with_batch(even, sequences), read_machine("a100-80"));
    EXPECT_TRUE(std::isfinite(timed.messages[0].limit_s)) << sequences;
    for (const OperationTime& each : timed.operations)
      EXPECT_TRUE(std::isfinite(each.time_s)) << each.name << ", " << sequences;
  }
}

// nccl-tests: 2 (n - 1) / n times the bytes, over the time.
TEST(Explain, Messages) {
  const StepAccount two = account(one_layer_run({0.2, 0.2}));
  ASSERT_EQ(two.messages.size(), 1u);
  EXPECT_DOUBLE_EQ(two.messages[0].bytes, 2e9);
  EXPECT_DOUBLE_EQ(two.messages[0].time_s, 1.0);
  EXPECT_DOUBLE_EQ(two.messages[0].exposed_s, 0.5);
  EXPECT_DOUBLE_EQ(two.messages[0].bus_bytes_per_s, 2e9);
  const StepAccount four = account(one_layer_run({0.2, 0.2, 0.2, 0.2}));
  EXPECT_DOUBLE_EQ(four.messages[0].bus_bytes_per_s, 3e9);
  EXPECT_EQ(four.messages[0].limit_s, 0.0);
  // Skipped steps send messages, too: four steps after the warm-up, of which two are timed.
  Record skipping = one_layer_run({0.2, 0.2});
  skipping.steps.skipped = {0, 0, 0, 1, 1};
  skipping.steps.time_s.resize(5, 0.1);
  EXPECT_DOUBLE_EQ(account(skipping).messages[0].bytes, 1e9);
}

// A profile adds the bandwidth of memory, launches and links. LayerNorm moves 3296 bytes (above) in
// seven operations.
TEST(Explain, RegionsFromAProfile) {
  Machine machine = read_machine("a100-80");
  machine.name = "mine";
  machine.gemm_efficiency = 184320.0 / machine.peak("fp32");
  machine.memory_efficiency = 32960.0 / (machine.data().bandwidth_gb_per_s * 1e9);
  machine.launch_us = 1000.0;
  const StepAccount all = account(one_layer_run({0.2, 0.2}), machine);
  const PartOfStep& norm = region(all, "layernorm");
  EXPECT_NEAR(norm.limit_s, 0.1, 1e-9);
  EXPECT_FALSE(norm.bound_by_flops);
  EXPECT_NEAR(norm.launch_s, 7e-3, 1e-12);
  EXPECT_NEAR(norm.shape_s, 0.0, 1e-9);
  // Kernels that move twice as many bytes as the plan; the rest of the region's time has no cause.
  Software software = read_software("gptbench");
  software.elementwise_factor = 2.0;
  const StepAccount twice = account_of(one_layer_run({0.2, 0.2}), machine, software);
  const PartOfStep& slower = region(twice, "layernorm");
  EXPECT_NEAR(slower.shape_s, 0.1, 1e-9);
  EXPECT_NEAR(slower.rest_s(), slower.time_s - 0.207, 1e-9);
  EXPECT_NEAR(twice.covered_s() - all.covered_s(),
              std::min(slower.time_s, 0.207) - std::min(norm.time_s, 0.107), 1e-9);
  Machine capped = machine;
  capped.capped_clock_ghz = 0.8 * machine.clock_ghz;
  EXPECT_NEAR(ceilings_of(one_layer_run({0.2}), capped).flops_per_s, 0.8 * 184320.0, 1e-6);
  EXPECT_GT(all.messages[0].limit_s, 0.0);
  // Operations share the time of their region.
  double time_s = 0.0;
  for (const OperationTime& each : all.operations)
    if (each.region == "linear") time_s += each.time_s;
  EXPECT_NEAR(time_s, 0.2, 1e-12);
}

TEST(Explain, SlowRanksAreNamedWithTheirHost) {
  const StepAccount slow = account(one_layer_run({0.2, 0.2, 0.3, 0.2}));
  ASSERT_TRUE(slow.names_ranks);
  ASSERT_EQ(slow.slow.size(), 1u);
  EXPECT_EQ(slow.slow[0].rank, 2);
  EXPECT_EQ(slow.slow[0].host, "node2");
  EXPECT_NEAR(slow.slow[0].computing_s, 0.35, 1e-12);
  EXPECT_NEAR(slow.slow[0].median_s, 0.25, 1e-12);
  EXPECT_EQ(slow.slow[0].slow_steps, slow.slow[0].steps);
  // Of five ranks the third.
  const StepAccount five = account(one_layer_run({0.4, 0.21, 0.3, 0.22, 0.2}));
  ASSERT_EQ(five.slow.size(), 2u);
  EXPECT_NEAR(five.slow[0].median_s, 0.27, 1e-12);
  // Of two ranks the faster one is the median.
  ASSERT_EQ(account(one_layer_run({0.3, 0.2})).slow.size(), 1u);
  EXPECT_EQ(account(one_layer_run({0.3, 0.2})).slow[0].rank, 0);
  // 9 % longer is not slow, and a rank that is faster slows none.
  EXPECT_TRUE(account(one_layer_run({0.2, 0.2, 0.2225, 0.2})).slow.empty());
  EXPECT_TRUE(account(one_layer_run({0.2, 0.2, 0.2, 0.1})).slow.empty());
  EXPECT_FALSE(account(one_layer_run({0.2})).names_ranks);
  // One of two steps is no habit.
  Record once = one_layer_run({0.2, 0.2, 0.3, 0.2});
  once.timing[1].values[10] = 0.2;
  EXPECT_TRUE(account(once).slow.empty());
}

// Five sequences are shared by four replicas: rank 0 has two, which take twice as long. The other
// ranks have one each, and rank 2 is slow.
TEST(Explain, ALargerShareOfTheBatchIsNotSlow) {
  const StepAccount healthy = account(with_batch(one_layer_run({0.4, 0.2, 0.2, 0.2}), 5));
  EXPECT_TRUE(healthy.names_ranks);
  EXPECT_TRUE(healthy.slow.empty());
  const StepAccount slow = account(with_batch(one_layer_run({0.4, 0.2, 0.3, 0.2}), 5));
  ASSERT_EQ(slow.slow.size(), 1u);
  EXPECT_EQ(slow.slow[0].rank, 2);
  EXPECT_NEAR(slow.slow[0].median_s, 0.25, 1e-12);
  // No rank has the work of another.
  EXPECT_FALSE(account(with_batch(one_layer_run({0.4, 0.2}), 3)).names_ranks);
}

// Rank 0 takes 0.35 s in each step, rank 1 0.25 s; a disturbance lengthens one of the two steps of
// rank 1.
TEST(Explain, ASlowRankIsNamedWhereTheOthersAreDisturbed) {
  Record disturbed = one_layer_run({0.3, 0.2});
  disturbed.timing[1].values[5] = 0.4;
  const StepAccount named = account(disturbed);
  ASSERT_EQ(named.slow.size(), 1u);
  EXPECT_EQ(named.slow[0].rank, 0);
  EXPECT_EQ(named.slow[0].slow_steps, 1u);
  EXPECT_EQ(named.slow[0].steps, 2u);
  EXPECT_NEAR(named.slow[0].fastest_ratio, 0.35 / 0.25, 1e-12);
  // Where both have a step without it, none is slow.
  Record quiet = one_layer_run({0.2, 0.2});
  quiet.timing[1].values[5] = 0.4;
  EXPECT_TRUE(account(quiet).slow.empty());
}

TEST(Explain, AReducedFileSaysWhyItNamesNoRank) {
  Record record = one_layer_run({0.2, 0.2, 0.3, 0.2, 0.2});
  for (RankSeries& series : record.timing) reduce_over_ranks(series);
  const StepAccount all = account(record);
  EXPECT_FALSE(all.names_ranks);
  EXPECT_TRUE(all.ranks_unknown);
  const std::string page = explain_page("out/result.h5", record, "");
  EXPECT_NE(page.find("no rank can be named"), std::string::npos) << page;
  EXPECT_FALSE(account(one_layer_run({0.2})).ranks_unknown);
}

// Medians over steps kept beside reduced series: 0.35 s against 0.25 s, and 0.35 - 0.27 s of
// imbalance.
TEST(Explain, AReducedFileNamesRanksByTheirMedians) {
  Record record = one_layer_run({0.2, 0.2, 0.3, 0.2, 0.2});
  for (RankSeries& series : record.timing) reduce_over_ranks(series);
  record.rank_computing_s = {0.25, 0.25, 0.35, 0.25, 0.25};
  const StepAccount all = account(record);
  EXPECT_FALSE(all.ranks_unknown);
  ASSERT_TRUE(all.names_ranks);
  ASSERT_EQ(all.slow.size(), 1u);
  EXPECT_EQ(all.slow[0].rank, 2);
  EXPECT_EQ(all.slow[0].host, "node2");
  EXPECT_DOUBLE_EQ(all.slow[0].computing_s, 0.35);
  EXPECT_DOUBLE_EQ(all.slow[0].median_s, 0.25);
  EXPECT_NEAR(all.imbalance_s, 0.08, 1e-12);
  const std::string page = explain_page("out/result.h5", record, "");
  EXPECT_NE(page.find("rank 2 on node2 computes 1.40 times"), std::string::npos) << page;
  EXPECT_NE(page.find("median 0.25 s\n"), std::string::npos) << page;
  EXPECT_NE(record_json("out/result.h5", record)
                .find("\"ranks\": {\"computing_s\": [0.25, 0.25, 0.35, 0.25, 0.25]}"),
            std::string::npos);
  // 9 % longer is not slow.
  record.rank_computing_s[2] = 0.2725;
  EXPECT_TRUE(account(record).slow.empty());
  // Those of another number of ranks are not used.
  record.rank_computing_s.pop_back();
  EXPECT_TRUE(account(record).ranks_unknown);
}

TEST(Explain, PageOf80Columns) {
  const Record record = one_layer_run({0.2, 0.3});
  for (const char* const profile : {"", "a100-80"}) {
    const std::string page = explain_page("out/result.h5", record, profile);
    for (size_t begin = 0; begin < page.size(); begin = page.find('\n', begin) + 1)
      EXPECT_LE(page.find('\n', begin) - begin, 80u) << page.substr(begin, 100);
    EXPECT_NE(page.find("rank 1 on node1 computes 1.40 times as long"), std::string::npos) << page;
  }
  const std::string page = explain_page("out/result.h5", record, "");
  EXPECT_NE(page.find("1 s, 100.0 % explained"), std::string::npos) << page;
  EXPECT_NE(page.find("linear     250  25.0 %    100  FLOPs   40.0 %       -      -   150"),
            std::string::npos)
      << page;
}

// A profile of one's own holds software too, by which operations share the time of a region.
TEST(Explain, OperationsShareTimeAsAnOwnProfileSays) {
  Record record = one_layer_run({0.2});
  for (const RankSeries& series : std::vector<RankSeries>(record.timing))
    if (series.name == "region_linear") {
      record.timing.push_back(series);
      record.timing.back().name = "region_head_loss";
    }
  const Machine machine = read_machine("a100-80");
  Software software = read_software("gptbench");
  const std::string path = testing::TempDir() + "own.in";
  const auto page = [&](double loss_factor) {
    software.loss_factor = loss_factor;
    std::ofstream(path) << profile_text(machine, software, {});
    return explain_page("out/result.h5", record, path);
  };
  const std::string fast = page(1.0), slow = page(1000.0);
  EXPECT_NE(fast, slow);
  EXPECT_EQ(fast, page(1.0));
  std::remove(path.c_str());
}

// Faster than the ceiling, which may be measured on another day, nothing is lost.
TEST(Explain, OperationsThatLoseNothingAreNotListed) {
  EXPECT_NE(explain_page("out/result.h5", one_layer_run({0.2}), "").find("operations that lose"),
            std::string::npos);
  EXPECT_EQ(explain_page("out/result.h5", one_layer_run({0.01}), "").find("operations that lose"),
            std::string::npos);
}

TEST(Explain, RefusesWhatHasNoSteps) {
  Record none = one_layer_run({0.2});
  none.summary.rate.sec_per_it = 0.0;
  EXPECT_THROW(account(none), Error);
  Record foreign = one_layer_run({0.2});
  foreign.provenance.deck_resolved = "&run bogus = 1 /";
  EXPECT_THROW(account(foreign), Error);
}

}  // namespace
}  // namespace gptbench
