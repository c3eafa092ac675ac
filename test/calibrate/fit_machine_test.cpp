// A machine whose rates are known: what is fitted to them is that machine, and its profile reads
// back and projects.
#include "calibrate/fit_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/error.h"
#include "calibrate/measure_kernels.h"
#include "kept_text.h"
#include "project/clock.h"
#include "project/links.h"
#include "project/project.h"

namespace gptbench {
namespace {

constexpr double gemm_rate = 1e11, memory_rate = 1e10, launch_s = 2e-6;
constexpr double bus_rate = 4e9, latency_s = 5e-6;

// GEMMs of a machine of one unit, tiles of 16 x 32, which cost 64 elements of the inner dimension.
Calibration known_machine() {
  Machine machine;
  machine.units = 1;
  machine.tile_rows = 16;
  machine.tile_columns = 32;
  machine.tile_ramp = 64;
  Calibration calibration;
  for (const int64_t M : {100, 333, 1024})
    for (const int64_t N : {70, 1000})
      for (const int64_t K : {64, 500, 4000}) {
        const double flops = 2.0 * static_cast<double>(M * N * K);
        const double time_s = gemm_s(machine, gemm_rate, memory_rate, static_cast<double>(M),
                                     static_cast<double>(N), static_cast<double>(K));
        calibration.kernels.push_back(
            {"linear_forward", "fp32", M, N, K, flops, 0.0, launch_s + time_s, 0.01});
      }
  calibration.kernels.push_back({launch, "fp32", 1, 1, 0, 0.0, 0.0, launch_s, 0.0});
  calibration.kernels.push_back({triad, "fp32", 1, 1, 0, 0.0, 1e9, 0.1, 0.0});
  // Rounds of a second scatter less than the GEMMs in them.
  calibration.kernels.push_back({round_of_gemms, "fp32", 256, 768, 768, 1e11, 0.0, 1.0, 0.002});
  // Half the bandwidth of the triad.
  calibration.kernels.push_back({"gelu_forward", "fp32", 1, 1, 0, 0.0, 1e9, launch_s + 0.2, 0.0});
  // FLOPs at half the rate of GEMMs, 1 + 256 / T times as long.
  for (const int64_t T : {256, 1024, 4096})
    for (const char* const kernel : {"attention_forward", "attention_backward"}) {
      const bool is_forward = kernel == std::string("attention_forward");
      const double time_s = (is_forward ? 1.0 : 1.25) * 1e9 / (0.5 * gemm_rate) *
                            (1.0 + 256.0 / static_cast<double>(T));
      calibration.kernels.push_back({kernel, "fp32", T, 64, T, 1e9, 0.0, launch_s + time_s, 0.0});
    }
  return calibration;
}

// Two ranks: an all-reduce passes its array once each way, in two steps.
void add_messages(Calibration& calibration) {
  for (int64_t bytes = 8; bytes <= int64_t{1} << 28; bytes *= 2) {
    const double s = static_cast<double>(bytes) / bus_rate;
    calibration.messages.push_back(
        {"data", "all_reduce", "f32", "sum", 2, 2, bytes, bytes / 4, 2.0 * latency_s + s});
    calibration.messages.push_back(
        {"data", "send", "f32", "none", 2, 2, bytes, bytes / 4, latency_s + s});
  }
}

NodeFacts host_of_two() {
  NodeFacts facts;
  facts.ranks_per_node = facts.message_ranks = 2;
  facts.memory_bytes = 8.0 * 1073741824.0;
  facts.reported = "a processor of 2 cores";
  return facts;
}

TEST(Fit, FindsTheMachine) {
  Calibration calibration = known_machine();
  add_messages(calibration);
  const FittedProfile fitted = fit_machine(calibration, host_of_two());
  const Machine& m = fitted.machine;
  EXPECT_EQ(m.tile_rows, 16);
  EXPECT_EQ(m.tile_columns, 32);
  EXPECT_EQ(m.tile_ramp, 64);
  // Profiles hold four digits.
  EXPECT_NEAR(m.peak("fp32") * m.gemm_efficiency, gemm_rate, 2e-3 * gemm_rate);
  EXPECT_NEAR(m.data().bandwidth_gb_per_s, 10.0, 1e-6);
  EXPECT_NEAR(m.memory_efficiency, 1.0, 1e-6);
  EXPECT_NEAR(m.launch_us, 2.0, 1e-6);
  EXPECT_NEAR(m.attention_efficiency, 0.5, 2e-3);
  EXPECT_EQ(m.attention_ramp, 256);
  EXPECT_EQ(m.attention_softmax, 0);
  EXPECT_NEAR(m.jitter, 0.002, 1e-6);
  EXPECT_EQ(m.data().memory_gb, 8.0);
  EXPECT_NEAR(fitted.software.elementwise_factor, 2.0, 2e-3);
  EXPECT_EQ(fitted.comments.at("loss_factor"), "not measured");
  // Messages of 64 MiB and more: latency is less than a thousandth.
  EXPECT_NEAR(m.within_gb_per_s, 4.0, 4e-3);
  EXPECT_NEAR(m.within_us, 5.0, 0.02);
  EXPECT_EQ(fitted.comments.at("between_us"), "not measured: one node");
  // What is part of other figures costs nothing once more.
  EXPECT_EQ(fitted.software.message_us, 0.0);
  EXPECT_EQ(fitted.software.operation_us, 0.0);
  EXPECT_EQ(fitted.software.within_efficiency, 1.0);
  EXPECT_EQ(fitted.software.between_efficiency, 1.0);
  EXPECT_EQ(fitted.comments.at("reserve_gib").substr(0, 34), "program and libraries of a rank, s");
}

// The kernels of any family, of which the profile names those that were measured.
TEST(Fit, ElementwiseKernelsAreThoseThatWereMeasured) {
  for (const char* const name :
       {"layernorm_forward", "layernorm_backward", "rmsnorm_forward", "rmsnorm_backward",
        "gelu_forward", "gelu_backward", "swiglu_forward", "swiglu_backward", "rotary"}) {
    Calibration calibration = known_machine();
    for (KernelRate& rate : calibration.kernels)
      if (rate.kernel == "gelu_forward") rate.kernel = name;
    calibration.kernels.push_back(
        {"residual_forward", "fp32", 1, 1, 0, 0.0, 1e9, launch_s + 0.1, 0.0});
    const FittedProfile fitted = fit_machine(calibration, host_of_two());
    EXPECT_NEAR(fitted.software.elementwise_factor, 1.5, 2e-3) << name;
    const std::string comment = fitted.comments.at("elementwise_factor");
    EXPECT_TRUE(comment == "measured: residual_forward, " + std::string(name) ||
                comment == "measured: " + std::string(name) + ", residual_forward")
        << comment;
  }
}

// What a fit cannot follow stays with its shape: one kernel in one type takes three times as long.
TEST(Fit, KeepsWhatAShapeTakes) {
  Calibration calibration = known_machine();
  for (const int64_t N : {70, 1000}) {
    KernelRate slow = calibration.kernels.front();
    slow.kernel = "linear_backward_input";
    slow.columns = N;
    calibration.kernels.push_back(slow);
  }
  const FittedProfile fitted = fit_machine(calibration, host_of_two());
  const Machine& m = fitted.machine;
  for (const KernelRate& rate : calibration.kernels) {
    if (rate.kernel.rfind("linear_", 0) != 0) continue;
    const auto M = static_cast<double>(rate.rows), N = static_cast<double>(rate.columns),
               K = static_cast<double>(rate.inner);
    const double model_s = modelled_gemm_s(m, m.peak("fp32") * m.gemm_efficiency,
                                           m.data().bandwidth_gb_per_s * 1e9 * m.memory_efficiency,
                                           M, N, K, rate.bytes);
    const double factor = shape_factor(m.shapes, rate.kernel + "_fp32", M, N, K);
    EXPECT_NEAR(factor * model_s, rate.time_s - launch_s, 1e-9 * rate.time_s) << rate.kernel;
  }
  EXPECT_EQ(m.shapes.at("linear_backward_input_fp32").size(), 2u);
  EXPECT_EQ(m.shapes.count("gelu_forward_fp32"), 0u);
}

// One bandwidth for all messages leaves a factor to each: of reduce-scatters, which take six times
// as long as theirs, and of short messages.
TEST(Fit, KeepsWhatAMessageTakes) {
  Calibration calibration = known_machine();
  add_messages(calibration);
  for (const int64_t bytes : {int64_t{1} << 20, int64_t{1} << 24})
    calibration.messages.push_back({"data", "reduce_scatter", "f32", "sum", 2, 2, bytes, bytes / 4,
                                    3.0 * static_cast<double>(bytes) / bus_rate});
  const FittedProfile fitted = fit_machine(calibration, host_of_two());
  const Links links = links_of(fitted.machine, fitted.software, 2);
  for (const MessageRate& rate : calibration.messages) {
    const auto bytes = static_cast<double>(rate.bytes);
    const OpKind kind = rate.op == "all_reduce" ? OpKind::all_reduce : OpKind::reduce_scatter;
    const double model_s = rate.op == "send" ? message_s(links, bytes, 0, 1)
                                             : collective_s(links, kind, bytes, {2, 2, 1});
    const double factor = shape_factor(fitted.machine.shapes, rate.op, 2.0, 2.0, bytes);
    EXPECT_NEAR(factor * model_s, rate.time_s, 1e-9 * rate.time_s) << rate.op << " " << bytes;
  }
  EXPECT_EQ(fitted.machine.shapes.at("reduce_scatter").size(), 2u);
}

// Neighbours are places 0 and 1, 2 and 3, ...: of 3 ranks per node some are on one node and some
// are not.
TEST(Fit, KeepsSendsOfNeighboursThatAreAllAlike) {
  const auto sends_of = [](int64_t ranks, int64_t per_node) {
    Calibration calibration = known_machine();
    const int64_t bytes = 1 << 20;
    calibration.messages.push_back({"data", "send", "f32", "none", ranks, per_node, bytes,
                                    bytes / 4, static_cast<double>(bytes) / bus_rate});
    NodeFacts facts = host_of_two();
    facts.ranks_per_node = facts.message_ranks = per_node;
    facts.nodes = ranks / per_node;
    const MeasuredShapes shapes = fit_machine(calibration, facts).machine.shapes;
    return shapes.count("send") == 0 ? 0.0 : shapes.at("send").at(0).N;
  };
  EXPECT_EQ(sends_of(6, 3), 0.0);
  EXPECT_EQ(sends_of(3, 3), 2.0);
  EXPECT_EQ(sends_of(8, 4), 2.0);
  EXPECT_EQ(sends_of(2, 1), 1.0);
}

// Three GEMMs beside a message take what they take alone and half of the message; what is measured
// beyond none and all of it is noise.
TEST(Fit, MeasuresWhatMessagesCost) {
  for (const auto& [both_s, cost] :
       {std::pair{0.04, 0.5}, std::pair{0.02, 0.0}, std::pair{0.09, 1.0}}) {
    Calibration calibration = known_machine();
    calibration.kernels.push_back({gemm_alone, "fp32", 1, 1, 1, 1e9, 0.0, 0.01, 0.0});
    calibration.kernels.push_back({message_alone, "fp32", 1, 1, 0, 0.0, 1e6, 0.02, 0.0});
    calibration.kernels.push_back({gemms_beside_message, "fp32", 1, 1, 1, 3e9, 1e6, both_s, 0.0});
    EXPECT_NEAR(fit_machine(calibration, host_of_two()).software.overlap_cost, cost, 1e-9);
  }
  // Not measured: hosts pass messages in the thread that computes.
  EXPECT_EQ(fit_machine(known_machine(), host_of_two()).software.overlap_cost, 1.0);
  NodeFacts accelerator = host_of_two();
  accelerator.is_accelerator = true;
  EXPECT_EQ(fit_machine(known_machine(), accelerator).software.overlap_cost,
            read_software("gptbench").overlap_cost);
}

// GEMMs in fp8 at twice the rate of bf16. Where there are none, a host's peak is that of bf16.
TEST(Fit, GemmsInFp8HaveARateOfTheirOwn) {
  Calibration bf16 = known_machine();
  for (KernelRate& rate : bf16.kernels)
    if (rate.flops > 0.0) rate.type = "bf16";
  Calibration fp8 = bf16;
  for (KernelRate rate : bf16.kernels)
    if (rate.kernel == "linear_forward") {
      rate.type = "fp8";
      rate.time_s = launch_s + 0.5 * (rate.time_s - launch_s);
      fp8.kernels.push_back(rate);
    }
  const Machine without = fit_machine(bf16, host_of_two()).machine,
                with = fit_machine(fp8, host_of_two()).machine;
  EXPECT_EQ(without.peak("fp8") * without.fp8_efficiency,
            without.peak("bf16") * without.gemm_efficiency);
  EXPECT_EQ(without.shapes.count("linear_forward_fp8"), 0u);
  EXPECT_NEAR(with.peak("bf16") * with.gemm_efficiency, gemm_rate, 2e-3 * gemm_rate);
  EXPECT_NEAR(with.peak("fp8") * with.fp8_efficiency, 2.0 * gemm_rate, 4e-3 * gemm_rate);
  // 18 sizes, each as measured.
  ASSERT_EQ(with.shapes.at("linear_forward_fp8").size(), 18u);
  for (const MeasuredShape& shape : with.shapes.at("linear_forward_fp8"))
    EXPECT_NEAR(shape.factor, 1.0, 4e-3);
  // A data sheet that does not state a peak of fp8 is given the measured one.
  NodeFacts facts = host_of_two();
  facts.sheet = *find_device("a100_80gb");
  ASSERT_TRUE(facts.sheet.fp8_tflops.empty());
  const Machine known = fit_machine(fp8, facts).machine;
  EXPECT_NEAR(known.peak("fp8") * known.fp8_efficiency, 2.0 * gemm_rate, 4e-3 * gemm_rate);
  EXPECT_EQ(known.peak("bf16"), 312e12);
}

// A deck with precision.tf32 is fitted with the peak, the rates and the shapes of tf32.
TEST(Fit, GemmsInTf32HaveThePeakOfTf32) {
  Calibration calibration = known_machine();
  for (KernelRate& rate : calibration.kernels)
    if (rate.flops > 0.0) rate.type = "tf32";
  NodeFacts facts = host_of_two();
  const Machine unknown = fit_machine(calibration, facts).machine;
  EXPECT_NEAR(unknown.peak("tf32") * unknown.gemm_efficiency, gemm_rate, 2e-3 * gemm_rate);
  EXPECT_EQ(unknown.shapes.at("linear_forward_tf32").size(), 18u);
  facts.sheet = *find_device("a100_80gb");
  const Machine known = fit_machine(calibration, facts).machine;
  EXPECT_NEAR(known.gemm_efficiency, gemm_rate / 156e12, 1e-3 * gemm_rate / 156e12);
}

// Between and at the end of what is tried.
TEST(Fit, FindsRampAndSoftmax) {
  for (const auto& [ramp, softmax] : {std::pair{96.0, 12.0}, std::pair{1024.0, 128.0}}) {
    Calibration calibration = known_machine();
    const auto is_attention = [](const KernelRate& rate) {
      return rate.kernel.rfind("attention_", 0) == 0;
    };
    auto& kernels = calibration.kernels;
    kernels.erase(std::remove_if(kernels.begin(), kernels.end(), is_attention), kernels.end());
    for (const int64_t T : {256, 1024, 4096})
      for (const int64_t D : {32, 64, 128}) {
        const double time_s = 1e9 / (0.5 * gemm_rate) * (1.0 + ramp / static_cast<double>(T)) *
                              (1.0 + softmax / static_cast<double>(D));
        kernels.push_back({"attention_forward", "fp32", T, D, T, 1e9, 0.0, launch_s + time_s, 0.0});
      }
    const FittedProfile fitted = fit_machine(calibration, host_of_two());
    EXPECT_EQ(fitted.machine.attention_ramp, ramp);
    EXPECT_EQ(fitted.machine.attention_softmax, softmax);
    EXPECT_NEAR(fitted.machine.attention_efficiency, 0.5, 2e-3);
  }
}

// Causal attention in the same time would be of twice the FLOPs; shapes have one name for both.
TEST(Fit, AttentionToBothSidesCountsAsCausal) {
  const auto profile_of = [](const Calibration& calibration) {
    const FittedProfile fitted = fit_machine(calibration, host_of_two());
    return profile_text(fitted.machine, fitted.software, fitted.comments);
  };
  Calibration to_both_sides = known_machine();
  for (KernelRate& rate : to_both_sides.kernels)
    if (rate.kernel.rfind("attention_", 0) == 0) {
      rate.kernel += without_mask;
      rate.flops *= 0.5;
    }
  EXPECT_EQ(profile_of(to_both_sides), profile_of(known_machine()));
}

// Whole profiles with their comments, kept in test/calibrate/profiles.
TEST(Fit, WritesWhatIsKept) {
  const auto expect_profile = [](const std::string& name, const Calibration& calibration,
                                 const NodeFacts& facts) {
    const FittedProfile fitted = fit_machine(calibration, facts);
    expect_as_kept("calibrate/profiles/" + name,
                   profile_text(fitted.machine, fitted.software, fitted.comments));
  };
  Calibration calibration = known_machine();
  NodeFacts facts = host_of_two();
  facts.reserve_bytes = 1073741824.0;
  expect_profile("host.in", calibration, facts);
  add_messages(calibration);
  for (int64_t bytes = 8; bytes <= int64_t{1} << 28; bytes *= 2)
    calibration.messages.push_back({"tensor", "all_gather", "f32", "none", 2, 1, bytes, bytes / 4,
                                    3.0 * latency_s + static_cast<double>(bytes) / bus_rate});
  facts.nodes = 2;
  expect_profile("hosts.in", calibration, facts);

  facts.is_accelerator = facts.fuses = true;
  facts.reported = "a new accelerator";
  calibration.kernels.push_back({host_triad, "fp32", 1, 1, 0, 0.0, 1e9, 0.25, 0.0});
  calibration.kernels.push_back({copy_to_device, "fp32", 1, 1, 0, 0.0, 1e9, 0.04, 0.0});
  calibration.kernels.push_back({copy_to_host, "fp32", 1, 1, 0, 0.0, 1e9, 0.05, 0.0});
  calibration.kernels.push_back({"adamw", "fp32", 1, 1, 0, 0.0, 1e9, launch_s + 0.3, 0.0});
  calibration.kernels.push_back(
      {"cross_entropy_finish", "fp32", 1, 1, 0, 0.0, 1e9, launch_s + 0.15, 0.0});
  expect_profile("accelerator.in", calibration, facts);
  facts.sheet = *find_device("a100_80gb");
  expect_profile("a100.in", calibration, facts);
  // Nothing but a GEMM and the triad.
  Calibration least;
  for (const KernelRate& rate : known_machine().kernels)
    if (rate.kernel == triad || least.kernels.empty()) least.kernels.push_back(rate);
  expect_profile("least.in", least, host_of_two());
}

// Peaks of a device that is known are those of its data sheet.
TEST(Fit, KeepsTheDataSheet) {
  NodeFacts facts = host_of_two();
  facts.sheet = *find_device("a100_80gb");
  const FittedProfile fitted = fit_machine(known_machine(), facts);
  EXPECT_EQ(fitted.machine.peak("fp32"), 19.5e12);
  EXPECT_NEAR(fitted.machine.gemm_efficiency, gemm_rate / 19.5e12, 1e-3 * gemm_rate / 19.5e12);
  facts.is_accelerator = true;
  EXPECT_EQ(fit_machine(known_machine(), facts).comments.at("reserve_gib"),
            "in use before anything was allocated");
}

// As one of the user's own that states bf16 alone, while a calibration measures other types, too.
TEST(Fit, MeasuresPeaksThatADataSheetLeavesOut) {
  NodeFacts facts = host_of_two();
  facts.sheet = *find_device("a100_80gb");
  facts.sheet.fp32_tflops.clear();
  const Machine machine = fit_machine(known_machine(), facts).machine;
  EXPECT_NEAR(machine.peak("fp32") * machine.gemm_efficiency, gemm_rate, 2e-3 * gemm_rate);
  EXPECT_EQ(machine.peak("bf16"), 312e12);
}

TEST(Fit, ProfileReadsBackAndProjects) {
  Calibration calibration = known_machine();
  add_messages(calibration);
  const FittedProfile fitted = fit_machine(calibration, host_of_two());
  const std::string path = testing::TempDir() + "fitted.in";
  std::ofstream(path) << profile_text(fitted.machine, fitted.software, fitted.comments);
  const Machine machine = read_machine(path);
  const Software software = read_software(path);
  std::remove(path.c_str());
#define GPTBENCH_SAME_MACHINE(key, range, doc) EXPECT_EQ(machine.key, fitted.machine.key) << #key;
  GPTBENCH_MACHINE_KEYS(GPTBENCH_SAME_MACHINE)
#define GPTBENCH_SAME_SOFTWARE(key, range, doc) \
  EXPECT_EQ(software.key, fitted.software.key) << #key;
  GPTBENCH_SOFTWARE_KEYS(GPTBENCH_SAME_SOFTWARE)
  EXPECT_EQ(machine.peak("fp32"), fitted.machine.peak("fp32"));
  EXPECT_EQ(machine.shapes.size(), 5u);  // GEMMs, attention both ways, two kinds of messages

  const Deck deck = parse_deck(
      "deck", "&model preset = 'gpt2-124m' /\n&batch global_batch_size = 2 /", {"run.device=host"});
  const StepWork work = step_work(deck, 2, machine, software);
  const Projection projection = project(work, machine, software);
  // At most the rate of GEMMs.
  EXPECT_GT(projection.time.sec_per_it, work.plan().costs.model_flops / gemm_rate);
  EXPECT_LT(projection.time.sec_per_it, 3.0 * work.plan().costs.model_flops / gemm_rate);
  EXPECT_EQ(projection.limit_bytes, fitted.machine.data().memory_gb * 1073741824.0);
}

// Groups of one rank per node share the links of their node.
TEST(Fit, LinksBetweenNodesAreThoseOfANode) {
  Calibration calibration = known_machine();
  for (int64_t bytes = 8; bytes <= int64_t{1} << 28; bytes *= 2)
    calibration.messages.push_back({"data", "all_gather", "f32", "none", 2, 1, bytes, bytes / 4,
                                    latency_s + 0.5 * static_cast<double>(bytes) / bus_rate});
  NodeFacts facts = host_of_two();
  facts.nodes = 2;
  const FittedProfile fitted = fit_machine(calibration, facts);
  EXPECT_NEAR(fitted.machine.between_gb_per_s, 8.0, 8e-3);
  EXPECT_NEAR(fitted.machine.between_us, 5.0, 0.02);
  EXPECT_EQ(fitted.comments.at("within_us"), "not measured: within a node");
  EXPECT_EQ(fitted.comments.at("between_us"), "measured: messages between nodes");
  // Two of the three ranks of a node sent.
  facts.ranks_per_node = 3;
  const FittedProfile some = fit_machine(calibration, facts);
  EXPECT_EQ(some.machine.ranks_per_node, 3.0);
  EXPECT_EQ(some.machine.between_gb_per_s, fitted.machine.between_gb_per_s);
  EXPECT_EQ(some.comments.at("between_us"),
            "measured: messages between nodes, 2 of 3 ranks per node");
  EXPECT_EQ(shapes_text(some.machine.shapes), shapes_text(fitted.machine.shapes));
}

TEST(Fit, RefusesWithoutGemms) {
  EXPECT_THROW(fit_machine(Calibration{}, host_of_two()), Error);
}

}  // namespace
}  // namespace gptbench
