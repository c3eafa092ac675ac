// Steps that are recorded once and replayed give the bits of steps that are issued: on the host,
// whose kernels and copies are written down instead of run while a recording is under way.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "plan/replay.h"
#include "train.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

using Work = std::vector<std::function<void()>>;
Work* recorded = nullptr;  // null: nothing is recorded
KernelTable host_table;

void run_or_record(std::function<void()> work) {
  if (recorded != nullptr)
    recorded->push_back(std::move(work));
  else
    work();
}

// Arguments are kept by value, as a graph does. The host's AdamW knows the step alone: it is told
// the one that the corrections in memory belong to when it runs.
AdamW as_corrected(AdamW a) {
  if (a.corrections != nullptr)
    a.t = std::lround(std::log(1.0 - a.lr / static_cast<double>(a.corrections[0])) /
                      std::log(a.beta1));
  return a;
}
template <class Arguments>
const Arguments& as_corrected(const Arguments& a) {
  return a;
}

template <auto entry>
struct Entry;
template <class Arguments, void (*KernelTable::*entry)(Queue&, const Arguments&)>
struct Entry<entry> {
  static void run(Queue& queue, const Arguments& arguments) {
    run_or_record([&queue, arguments] { (host_table.*entry)(queue, as_corrected(arguments)); });
  }
};

class RecordingDevice final : public WrappedDevice {
 public:
  explicit RecordingDevice(bool refuses)
      : WrappedDevice(make_host_device(DeviceKind::host)), refuses_(refuses) {}

  const KernelTable& kernels(ComputeType compute) const override {
    table_ = host_table = WrappedDevice::kernels(compute);
#define GPTBENCH_ENTRY(name) table_.name = Entry<&KernelTable::name>::run
    GPTBENCH_ENTRY(linear_forward);
    GPTBENCH_ENTRY(linear_backward_input);
    GPTBENCH_ENTRY(linear_backward_weight);
    GPTBENCH_ENTRY(linear_gelu_forward);
    GPTBENCH_ENTRY(linear_gelu_backward_input);
    GPTBENCH_ENTRY(bias_backward);
    GPTBENCH_ENTRY(layernorm_forward);
    GPTBENCH_ENTRY(layernorm_backward);
    GPTBENCH_ENTRY(attention_forward);
    GPTBENCH_ENTRY(attention_backward);
    GPTBENCH_ENTRY(gelu_forward);
    GPTBENCH_ENTRY(gelu_backward);
    GPTBENCH_ENTRY(tanh_forward);
    GPTBENCH_ENTRY(tanh_backward);
    GPTBENCH_ENTRY(residual_forward);
    GPTBENCH_ENTRY(dropout_backward);
    GPTBENCH_ENTRY(embedding_forward);
    GPTBENCH_ENTRY(embedding_backward);
    GPTBENCH_ENTRY(cross_entropy_statistics);
    GPTBENCH_ENTRY(cross_entropy_combine);
    GPTBENCH_ENTRY(cross_entropy_finish);
    GPTBENCH_ENTRY(accumulate);
    GPTBENCH_ENTRY(squared_norm);
    GPTBENCH_ENTRY(sum_scalars);
    GPTBENCH_ENTRY(loss_scale);
    GPTBENCH_ENTRY(clip_factor);
    GPTBENCH_ENTRY(adamw);
    GPTBENCH_ENTRY(convert);
    GPTBENCH_ENTRY(fp8_quantize);
    GPTBENCH_ENTRY(fp8_transpose);
    GPTBENCH_ENTRY(fp8_update_scales);
#undef GPTBENCH_ENTRY
    return table_;
  }

  void upload(Queue& queue, void* device, const void* host, int64_t bytes) override {
    EXPECT_EQ(recorded, nullptr) << "an upload within a recording";
    WrappedDevice::upload(queue, device, host, bytes);
  }
  void fill_zero(Queue& queue, void* device, int64_t bytes) override {
    run_or_record(
        [&queue, device, bytes, this] { WrappedDevice::fill_zero(queue, device, bytes); });
  }
  void copy(Queue& queue, void* to, const void* from, int64_t bytes) override {
    run_or_record([&queue, to, from, bytes, this] { WrappedDevice::copy(queue, to, from, bytes); });
  }

  bool can_record() const override {
    return true;
  }
  void begin_recording(Queue&) override {
    ++recordings;
    work_ = std::make_unique<Work>();
    recorded = work_.get();
  }
  std::unique_ptr<Recording> end_recording(Queue&) override {
    recorded = nullptr;
    if (refuses_) throw Error(Exit::peer, "this device records nothing");
    return std::make_unique<Replayed>(std::move(work_), replays);
  }

  int recordings = 0, replays = 0;

 private:
  class Replayed final : public Recording {
   public:
    Replayed(std::unique_ptr<Work> work, int& replays)
        : work_(std::move(work)), replays_(replays) {}
    void replay(Queue&) override {
      ++replays_;
      for (const auto& each : *work_) each();
    }

   private:
    std::unique_ptr<Work> work_;
    int& replays_;
  };

  bool refuses_;
  std::unique_ptr<Work> work_;
  mutable KernelTable table_;
};

constexpr int steps = 5;

struct Seen {
  std::vector<double> losses, norms;
  uint64_t checksum = 0;
  std::string refusal;
  int recordings = 0, replays = 0;
};

Seen run(SmallModel model, bool replay, bool required = false, bool refuses = false) {
  model.device = "cuda";
  RecordingDevice device(refuses);
  Config config = resolved_config(model);
  config.precision.initial_loss_scale = 0x1p24;  // of fp16: the first steps are skipped
  const Plan plan = make_plan(config, 1, 0, {});
  EXPECT_EQ(replay_obstacle(plan), "");
  const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, device, {}, *tokens);
  EXPECT_TRUE(engine.allocate());
  engine.initialise_weights();
  EXPECT_TRUE(!replay || engine.replay_steps(required));
  Seen seen;
  for (int step = 0; step < steps; ++step) {
    const StepResult result = engine.step(step, step == 3);
    EXPECT_EQ(result.stop, step == 3);
    seen.losses.push_back(result.loss);
    seen.norms.push_back(result.skipped ? -result.loss_scale : result.grad_norm);
  }
  seen.checksum = engine.checksum();
  seen.refusal = engine.replay_refusal();
  seen.recordings = device.recordings;
  seen.replays = device.replays;
  return seen;
}

std::vector<SmallModel> models() {
  SmallModel gpt = model_of("cuda", "bf16", 2, 5);
  SmallModel bert = gpt;
  bert.family = "bert";
  SmallModel padded = bert;
  padded.short_seq_prob = 0.75;
  SmallModel recomputed = model_of("cuda", "fp32", 2, 4);
  recomputed.recompute = "full";
  SmallModel offloaded = gpt;
  offloaded.offload = "optimizer,activations";
  SmallModel fp8 = model_of("cuda", "fp8", 2, 5);
  fp8.fp8_amax_history = 2;  // the ring goes round
  return {gpt, bert, padded, recomputed, offloaded, fp8, model_of("cuda", "fp16", 2, 5)};
}

}  // namespace

TEST(Replays, GiveTheBitsOfSteps) {
  for (const SmallModel& model : models()) {
    SCOPED_TRACE(testing::Message() << model.family << " " << model.compute << " "
                                    << model.recompute << " " << model.offload);
    const Seen issued = run(model, false), replayed = run(model, true);
    EXPECT_EQ(issued.recordings, 0);
    EXPECT_EQ(replayed.recordings, 1);
    EXPECT_EQ(replayed.replays, steps - 1);  // the recorded step is run by its first replay
    EXPECT_EQ(replayed.losses, issued.losses);
    EXPECT_EQ(replayed.norms, issued.norms);
    EXPECT_EQ(replayed.checksum, issued.checksum);
  }
}

// A device that refuses in the end has run nothing: the step is issued, and so are those after it.
TEST(Replays, RefusedStepsAreIssued) {
  const SmallModel model = models().front();
  const Seen issued = run(model, false), refused = run(model, true, false, true);
  EXPECT_EQ(refused.refusal, "this device records nothing");
  EXPECT_EQ(refused.recordings, 1);
  EXPECT_EQ(refused.replays, 0);
  EXPECT_EQ(refused.losses, issued.losses);
  EXPECT_EQ(refused.checksum, issued.checksum);
  EXPECT_THROW(run(model, true, true, true), Error);
}

TEST(Replays, WhatDiffersFromStepToStepIsAnObstacle) {
  const auto obstacle = [](const SmallModel& m) {
    return replay_obstacle(make_plan(resolved_config(m), m.ranks(), 0, {}));
  };
  SmallModel m = models().front();
  m.dropout = 0.1;
  EXPECT_NE(obstacle(m).find("model.dropout"), std::string::npos);
  m.dropout = 0.0;
  m.compute = "bf16";
  m.data_parallel = 2;
  EXPECT_NE(obstacle(m).find("messages"), std::string::npos);
  m.data_parallel = 1;
  m.offload = "optimizer";
  m.offload_target = "file";
  EXPECT_NE(obstacle(m).find("offload_target"), std::string::npos);
  m.offload = "none";
  m.device = "host";
  EXPECT_NE(obstacle(m).find("device = 'host'"), std::string::npos);
}

}  // namespace gptbench
