// The verification is verified: sound kernels leave a residual below the threshold, a kernel that
// is wrong in one respect one above.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <string>

#include "base/random.h"
#include "broken_kernels.h"
#include "comm/agree.h"
#include "configs.h"
#include "device/host/blocking.h"
#include "device/host/gemm_converted.h"
#include "device/host/gemm_fp8.h"
#include "plan/workspace.h"
#include "verify/reduced.h"
#include "verify/verify.h"

namespace gptbench {
namespace {

struct Residuals {
  double loss = 0.0, gradients = 0.0, update = 0.0;
  double largest() const { return std::max({loss, gradients, update}); }
  bool passed = true;
  double threshold = 0.0;
};

Config small_config(const MpiWorld& world, const char* compute) {
  SmallModel m;
  m.hidden = 32;
  m.seq = 40;
  m.vocab = 67;
  m.global_batch = 4 * world.size() + 1;
  m.data_parallel = world.size();
  m.device = "host";
  m.compute = compute;
  return resolved_config(m);
}

ReferenceCheck reference_check(MpiWorld& world, const Plan& full, Device& device) {
  std::vector<std::unique_ptr<Communicator>> owned;
  CommunicatorTable communicators;
  for (const CommTotal& total : full.costs.comm) {
    owned.push_back(world.make_communicator(full.grid, total.axis));
    communicators.by_axis[static_cast<size_t>(total.axis)] = owned.back().get();
  }
  return check_against_reference(world, device, communicators, full);
}

Residuals residuals_of(MpiWorld& world, const Config& config, const BrokenKernel* broken) {
  BrokenDevice device(broken, config.precision.tf32);
  const Plan full = make_plan(config, world.size(), world.rank(),
                              device_traits(config.run.device, device.info().num_threads));
  const ReferenceCheck check = reference_check(world, full, device);
  EXPECT_TRUE(check.kernels_not_verified.empty());
  Residuals residuals;
  for (const VerifyEntry& entry : check.entries) {
    residuals.passed = residuals.passed && entry.passed;
    residuals.threshold = entry.threshold;
    if (entry.name == "loss_against_reference") residuals.loss = entry.value;
    if (entry.name == "gradients_against_reference") residuals.gradients = entry.value;
    if (entry.name == "update_against_reference") residuals.update = entry.value;
  }
  if (world.rank() == 0) {
    EXPECT_EQ(check.entries.size(), 3u);
    std::printf("  %-40s loss %9.3g  gradients %9.3g  update %9.3g\n",
                broken != nullptr ? broken->name : "sound kernels", residuals.loss,
                residuals.gradients, residuals.update);
  }
  return residuals;
}

void check_broken_kernels(const char* compute, double least, bool tf32 = false) {
  MpiWorld world(nullptr, nullptr);
  const bool is_short = std::string(compute) == "bf16" || std::string(compute) == "fp16" || tf32;
  const bool is_fp8 = std::string(compute) == "fp8";
  Config config = small_config(world, compute);
  config.precision.tf32 = tf32;
  const Residuals sound = residuals_of(world, config, nullptr);
  EXPECT_TRUE(sound.passed);
  for (const BrokenKernel& broken : is_fp8 ? broken_kernels_in_fp8() : broken_kernels()) {
    const Residuals residuals = residuals_of(world, config, &broken);
    if (world.rank() != 0 || (is_short && !broken.beyond_bf16)) continue;
    EXPECT_FALSE(residuals.passed) << broken.name;
    // Not merely above the threshold; a NaN is above everything.
    EXPECT_FALSE(residuals.largest() < least * residuals.threshold) << broken.name;
  }
}

// In fp32 an error of one part in a hundred in one kernel stands out by an order of magnitude.
TEST(Verification, FindsBrokenKernelsInFp32) {
  check_broken_kernels("fp32", 10.0);
}

// With factors of 10 bits a product is no better than one of fp16.
TEST(Verification, FindsBrokenKernelsInTf32) {
  check_broken_kernels("fp32", 2.0, true);
}

// In bf16 one part in a hundred is what rounding does; a term that is missing is found.
TEST(Verification, FindsBrokenKernelsInBf16) {
  check_broken_kernels("bf16", 1.0);
}

// In fp8 what is wrong by half of a gradient is found.
TEST(Verification, FindsBrokenKernelsInFp8) {
  check_broken_kernels("fp8", 1.0);
}

// fp16 has three bits more, and residuals are eight times as large.
TEST(Verification, FindsBrokenKernelsInFp16) {
  check_broken_kernels("fp16", 4.0);
}

// A device of which a kernel finds no memory.
class FullDevice final : public WrappedDevice {
 public:
  FullDevice() : WrappedDevice(make_host_device(DeviceKind::host)) {}
  const KernelTable& kernels(ComputeType compute) const override {
    table_ = WrappedDevice::kernels(compute);
    table_.gelu_forward = [](Queue&, const GeluForward&) { throw std::bad_alloc(); };
    return table_;
  }

 private:
  mutable KernelTable table_;
};

// Numbers that were never computed are not wrong ones: that is no verdict about the machine.
TEST(Verification, MemoryThatRunsOutIsNoWrongNumber) {
  MpiWorld world(nullptr, nullptr);
  const auto sound = make_host_device(DeviceKind::host);
  FullDevice full;
  const bool is_full = world.rank() == world.size() - 1;
  Device& device = is_full ? static_cast<Device&>(full) : *sound;
  const Config config = small_config(world, "fp32");
  const Plan plan = make_plan(config, world.size(), world.rank(),
                              device_traits(config.run.device, device.info().num_threads));
  try {
    reference_check(world, plan, device);
    FAIL() << "numbers were compared";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), Exit::out_of_memory);
    EXPECT_EQ(std::string(error.what()),
              "the reduced model of the verification: no memory for gelu_forward; leave it more "
              "memory, or use run.verify = .false.");
  }
}

// Padding that takes part is found, though few of the run's own sequences are padded.
TEST(Verification, FindsBrokenKernelsOfPadding) {
  MpiWorld world(nullptr, nullptr);
  for (const char* compute : {"fp32", "bf16"}) {
    Config config = small_config(world, compute);
    config.model.family = ModelFamily::bert;
    config.data.short_seq_prob = 0.05;
    EXPECT_TRUE(residuals_of(world, config, nullptr).passed) << compute;
    for (const BrokenKernel& broken : broken_kernels_of_padding()) {
      const Residuals residuals = residuals_of(world, config, &broken);
      if (world.rank() != 0 || (compute[0] == 'b' && !broken.beyond_bf16)) continue;
      EXPECT_FALSE(residuals.passed) << compute << ", " << broken.name;
    }
  }
}

// Models of many shapes: roundoff stays below half the threshold.
TEST(Verification, SoundKernelsPassInEveryShape) {
  MpiWorld world(nullptr, nullptr);
  uint64_t drawn = 0;
  const auto draw = [&](int64_t low, int64_t high) {
    const uint32_t word = random_word(20, RandomStream::test, 0, drawn++);
    return low + static_cast<int64_t>(word % static_cast<uint64_t>(high - low + 1));
  };
  using P = Precision;
  for (int shape = 0; shape < 8; ++shape) {
    for (const std::string type : {"fp32", "tf32", "bf16", "fp16", "fp8"}) {
      const bool tf32 = type == "tf32";
      Config config = small_config(world, tf32 ? "fp32" : type.c_str());
      config.precision.tf32 = tf32;
      config.model.num_attention_heads = config.model.num_kv_heads = draw(1, 3);
      config.model.hidden_size = config.model.num_attention_heads * 8 * draw(1, 6);
      config.model.ffn_hidden_size = 4 * config.model.hidden_size;
      config.model.seq_length = draw(3, 100);
      config.model.vocab_size = draw(20, 400);
      config.model.num_layers = draw(1, 2);
      config.model.dropout = draw(0, 2) == 0 ? 0.1 : 0.0;
      config.batch.micro_batch_size = draw(1, 3);
      config.batch.global_batch_size = world.size() * config.batch.micro_batch_size + draw(0, 3);
      if (config.precision.compute == P::bf16 && shape % 3 == 1)  // gradients, moments, weights
        config.precision = {P::bf16, P::bf16, P::bf16, P::bf16, false, false};
      if (config.precision.compute == P::bf16 && shape % 3 == 2)
        config.precision = {P::bf16, P::fp32, P::bf16, P::fp32, false, true};
      if (config.precision.compute == P::fp16 && shape % 3 == 1) config.precision.reduce = P::fp16;
      if (config.precision.compute == P::fp16 && shape % 3 == 2)
        config.precision.initial_loss_scale = 0x1p40;  // lowered until nothing overflows
      const Residuals residuals = residuals_of(world, config, nullptr);
      EXPECT_LE(residuals.largest(), 0.5 * residuals.threshold) << type << " shape " << shape;
    }
  }
}

// In double precision replicas and the reference add the rows of the loss in other orders, and that
// alone makes them differ.
TEST(Verification, SoundKernelsPassInDoublePrecision) {
  MpiWorld world(nullptr, nullptr);
  const auto device = make_host_device(DeviceKind::ref);
  for (int64_t seed = 500; seed < 520; ++seed) {
    SmallModel m;
    m.layers = m.heads = 1;
    m.hidden = 16;
    m.seq = 33;
    m.vocab = 153;
    m.global_batch = 12;
    m.data_parallel = world.size();
    m.device = "ref";
    m.compute = "fp64";
    Config config = resolved_config(m);
    config.run.seed = seed;
    const Plan full = make_plan(config, world.size(), world.rank());
    for (const VerifyEntry& entry : reference_check(world, full, *device).entries)
      EXPECT_LE(entry.value, 0.5 * entry.threshold) << entry.name << ", seed " << seed;
  }
}

// The reference trains on no more tokens for thousands of replicas than for dozens.
TEST(Verification, BatchOfTheReferenceIsBounded) {
  SmallModel m;
  m.data_parallel = 12288;
  m.global_batch = 4 * m.data_parallel;
  m.seq = 2048;
  const Config reduced = reduced_config(resolved_config(m));
  EXPECT_LE(reduced.batch.global_batch_size * reduced.model.seq_length, 4096);
  EXPECT_EQ(reduced.batch.micro_batch_size, 1);
  m.data_parallel = 2;
  EXPECT_EQ(reduced_config(resolved_config(m)).batch.global_batch_size, 9);
}

// The reference of dozens of stages of wide layers has narrow ones: a step takes it minutes, not
// hours, and its parameters some gigabytes.
TEST(Verification, ReducedModelOfManyStagesIsNarrow) {
  SmallModel m;
  m.hidden = 12288;
  m.heads = 96;
  m.layers = 96;
  m.vocab = 50257;
  m.tensor_parallel = 8;
  m.compute = "bf16";
  m.device = "host";
  const auto parameters = [&](int64_t stages) {
    m.pipeline_parallel = stages;
    int64_t sum = 0;
    for (const LogicalTensor& tensor : tensor_table(reduced_config(resolved_config(m)).model))
      sum += tensor.size();
    return sum;
  };
  EXPECT_GT(parameters(4), 200'000'000);
  EXPECT_LT(parameters(16), 250'000'000);
}

// Beyond the blocks of the host's kernels go the reduced models of runs that do: widths in one,
// keys and rows in the other. The reference computes a bounded number of FLOPs for them.
TEST(Verification, ReducedModelsCrossTheBlocksOfTheRun) {
  for (const char* compute : {"fp32", "bf16", "fp16", "fp8"})
    for (const int64_t tensor : {1, 2})
      for (const int64_t replicas : {1, 2, 100})
        for (const int64_t micro_batch : {1, 4}) {
          SmallModel m;
          m.compute = compute;
          m.device = "host";
          m.tensor_parallel = tensor;
          m.data_parallel = replicas;
          m.micro_batch = micro_batch;
          m.global_batch = 8 * micro_batch * replicas;
          m.layers = 12;
          m.hidden = 768;
          m.heads = 12;
          m.seq = 1100;
          m.vocab = 50257;
          SCOPED_TRACE(testing::Message() << compute << ", tensor " << tensor << ", replicas "
                                          << replicas << ", micro-batch " << micro_batch);
          const bool converts = std::string(compute) != "fp32";
          int64_t keys = 0, rows = 0, hidden = 0, ffn = 0, vocabulary = 0;
          double tokens = 0.0;
          for (const Config& reduced : reduced_configs(resolved_config(m))) {
            const ModelConfig& model = reduced.model;
            hidden = std::max(hidden, model.hidden_size);
            ffn = std::max(ffn, model.ffn_hidden_size);
            vocabulary = std::max(vocabulary, model.vocab_size);
            keys = std::max(keys, model.seq_length);
            rows = std::max(rows, reduced.batch.micro_batch_size * model.seq_length);
            tokens += static_cast<double>(reduced.batch.global_batch_size * model.seq_length);
          }
          EXPECT_GT(hidden, host::column_block);
          EXPECT_GT(vocabulary, tensor * host::loss_chunk);
          if (converts) {
            EXPECT_GT(ffn, tensor * std::max(gemm_block_mn, fp8_gemm_block_k));
          }
          EXPECT_GT(keys, attention_tile_keys);
          EXPECT_GT(rows,
                    converts ? std::max(gemm_block_mn, fp8_gemm_block_k) : attention_tile_keys);
          EXPECT_LE(tokens, 4096 + 2 * 4096);
        }
}

// What a run does not cross is not crossed in its place.
TEST(Verification, ReducedModelOfASmallModelIsOneAndSmall) {
  SmallModel m;
  const Config full = resolved_config(m);
  const std::vector<Config> configs = reduced_configs(full);
  ASSERT_EQ(configs.size(), 1u);
  EXPECT_EQ(configs[0].model.hidden_size, full.model.hidden_size);
  EXPECT_EQ(configs[0].model.vocab_size, full.model.vocab_size);
  EXPECT_EQ(configs[0].model.seq_length, full.model.seq_length);
}

// A norm over one channel passes no gradient: what is left of it is roundoff.
TEST(Verification, ReducedModelsOfNarrowHeadsHaveSeveral) {
  SmallModel m;
  m.hidden = m.heads = 12;
  m.seq = 2000;
  const std::vector<Config> configs = reduced_configs(resolved_config(m));
  ASSERT_EQ(configs.size(), 2u);
  EXPECT_EQ(configs[1].model.hidden_size, 8);
}

// Operations of the run that the reduced model does not execute are named, each once.
TEST(Verification, NamesKernelsThatTheReducedModelLacks) {
  MpiWorld world(nullptr, nullptr);
  const Config config = small_config(world, "fp32");
  BrokenDevice device(nullptr, false);
  Plan full = make_plan(config, world.size(), world.rank(),
                        device_traits(config.run.device, device.info().num_threads));
  for (const OpKind kind :
       {OpKind::rotary_forward, OpKind::swiglu_forward, OpKind::rotary_forward}) {
    full.ops.emplace_back();
    full.ops.back().kind = kind;
  }
  const ReferenceCheck check = reference_check(world, full, device);
  EXPECT_EQ(check.kernels_not_verified,
            (std::vector<std::string>{spec_of(OpKind::rotary_forward).name,
                                      spec_of(OpKind::swiglu_forward).name}));
}

// What a deck asks of the optimizer does not decide whether its kernels pass.
TEST(Verification, OptimizerOfTheDeckDoesNotMatter) {
  MpiWorld world(nullptr, nullptr);
  Config config = small_config(world, "fp32");
  for (const double lr : {0.0, 1e30}) {
    for (const double clip : {0.0, 1e-3}) {
      config.optimizer.lr = lr;
      config.optimizer.clip = clip;
      EXPECT_TRUE(residuals_of(world, config, nullptr).passed) << lr << ", " << clip;
    }
  }
}

}  // namespace
}  // namespace gptbench
