// Steps that are recorded once and replayed give the bits of steps that are issued: on the host,
// whose kernels, copies and messages are written down instead of run while a recording is under
// way.
#include <gtest/gtest.h>

#include <map>

#include "plan/replay.h"
#include "recording_device.h"
#include "train.h"

namespace gptbench {
namespace {

constexpr int steps = 5;

struct Seen {
  std::vector<double> losses, norms;
  // By the device's marks, which a replay counts as its recording did.
  std::vector<std::array<double, num_regions>> region_s;
  uint64_t checksum = 0;
  std::string refusal;
  int recordings = 0, replays = 0;
  int events = 0;                                                // of marks, in the last step
  std::vector<int64_t> changed_before_wait, changed_after_wait;  // RecordingDevice
};

// Notes how often each sequence is asked for.
class CountedTokens final : public TokenSource {
 public:
  explicit CountedTokens(std::unique_ptr<TokenSource> inner) : inner_(std::move(inner)) {}
  std::string description() const override { return inner_->description(); }
  void read(int64_t sequence, int32_t* tokens) const override {
    ++reads[sequence];
    inner_->read(sequence, tokens);
  }
  mutable std::map<int64_t, int> reads;

 private:
  std::unique_ptr<TokenSource> inner_;
};

// Compute operations of a trace lie one behind the other, a second each by the counting stopwatch,
// with another for each wait.
void expect_times_of_the_device(const Plan& plan, const Trace& trace) {
  double at = trace.origin_s(), waits = 0.0;
  for (const TraceEvent& event : trace.events()) {
    const Op& op = plan.ops[static_cast<size_t>(event.op)];
    if (op.queue != QueueId::compute) continue;
    waits += static_cast<double>(op.waits_for.size());
    EXPECT_GE(event.begin_s, at);
    EXPECT_NEAR(event.end_s - event.begin_s, 1.0, 1e-6);
    at = event.end_s;
  }
  EXPECT_LE(at - trace.origin_s(), static_cast<double>(trace.events().size()) + waits + 1e-3);
}

// Collective. traced: a step, or -1. evaluated: the step before an evaluation, or -1.
Seen run(MpiWorld& world, SmallModel model, bool replay, bool required = false,
         bool refuses = false, int traced = -1, int evaluated = -1) {
  model.device = "cuda";
  RecordingDevice device(refuses);
  Config config = resolved_config(model);
  config.run.comm = CommLibrary::nccl;
  config.precision.initial_loss_scale = 0x1p24;  // of fp16: the first steps are skipped
  const Plan plan = make_plan(config, world.size(), world.rank());
  EXPECT_EQ(replay_obstacle(plan), "");
  const Connections connections = connect(world, plan);
  std::vector<std::unique_ptr<Communicator>> owned;
  CommunicatorTable communicators;
  for (int axis = 0; axis < num_axes; ++axis) {
    Communicator* const inner = connections.table.by_axis[static_cast<size_t>(axis)];
    if (inner == nullptr) continue;
    owned.push_back(std::make_unique<RecordedCommunicator>(*inner));
    communicators.by_axis[static_cast<size_t>(axis)] = owned.back().get();
  }
  const CountedTokens tokens(
      make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid));
  Engine engine(plan, device, communicators, tokens);
  EXPECT_TRUE(engine.allocate());
  engine.initialise_weights();
  const auto all = [&](bool mine) { return world.all(mine); };
  EXPECT_TRUE(!replay || engine.replay_steps(required, all));
  EXPECT_EQ(engine.input_bytes(), replay ? replayed_input_bytes(plan) : 0);
  if (traced >= 0) engine.trace_step(traced);
  Seen seen;
  for (int step = 0; step < steps; ++step) {
    const StepResult result = engine.step(step, step == 3);
    EXPECT_EQ(result.stop, step == 3);
    seen.losses.push_back(result.loss);
    seen.region_s.push_back(engine.timer().times().region_s);
    seen.norms.push_back(result.skipped ? -result.loss_scale : result.grad_norm);
    if (step == evaluated) seen.losses.push_back(engine.evaluate(1000));
  }
  if (traced >= 0) expect_times_of_the_device(plan, *engine.trace());
  // Those of the next step are drawn while one runs.
  for (const auto& [sequence, reads] : tokens.reads)
    EXPECT_TRUE(reads == 1 || plan.shape.family.head == HeadKind::masked) << sequence;
  for (const auto& [executed, planned] : {std::pair{engine.loads(), plan.costs.loads},
                                          std::pair{engine.stores(), plan.costs.stores}}) {
    EXPECT_EQ(executed.count, steps * planned.count);
    EXPECT_EQ(executed.bytes, steps * planned.bytes);
  }
  seen.checksum = engine.checksum();
  seen.refusal = engine.graph().refusal();
  seen.recordings = device.recordings;
  seen.replays = device.replays;
  seen.events = device.stopwatch->events();
  seen.changed_before_wait = device.changed_before_wait;
  seen.changed_after_wait = device.changed_after_wait;
  return seen;
}

std::vector<SmallModel> models(int64_t ranks) {
  SmallModel gpt = model_of("cuda", "bf16", 2, 5);
  gpt.data_parallel = ranks;
  if (ranks > 1) {
    SmallModel sharded = gpt, tensor = gpt;
    sharded.zero_stage = 3;
    sharded.compute = "fp16";
    tensor.data_parallel = 1;
    tensor.tensor_parallel = ranks;
    tensor.sequence_parallel = true;
    tensor.dropout = 0.1;
    return {gpt, sharded, tensor};
  }
  SmallModel bert = gpt;
  bert.family = "bert";
  SmallModel padded = bert;
  padded.short_seq_prob = 0.75;
  bert.dropout = 0.1;
  SmallModel recomputed = model_of("cuda", "fp32", 2, 4);
  recomputed.recompute = "full";
  recomputed.dropout = 0.1;
  SmallModel offloaded = gpt;
  offloaded.offload = "optimizer,activations";
  SmallModel fp8 = model_of("cuda", "fp8", 2, 5);
  fp8.fp8_amax_history = 2;  // the ring goes round
  return {gpt, bert, padded, recomputed, offloaded, fp8, model_of("cuda", "fp16", 2, 5)};
}

}  // namespace

// Among steps that are replayed, one that is traced is issued; an evaluation after it is in no
// trace.
TEST(Replays, MakeWayForATracedStep) {
  MpiWorld world(nullptr, nullptr);
  const SmallModel model = models(world.size()).front();
  const Seen issued = run(world, model, false, false, false, -1, 3);
  const Seen traced = run(world, model, true, false, false, 3, 3);
  EXPECT_EQ(traced.recordings, InputMemory::num_sets);
  EXPECT_EQ(traced.replays, steps - 2);
  EXPECT_EQ(traced.losses, issued.losses);
  EXPECT_EQ(traced.region_s, issued.region_s);
  EXPECT_EQ(traced.checksum, issued.checksum);
}

// An evaluation is issued, and overwrites what was loaded ahead.
TEST(Replays, MakeWayForAnEvaluation) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& model : models(world.size())) {
    for (const int step : {1, 2}) {
      const Seen issued = run(world, model, false, false, false, -1, step);
      const Seen replayed = run(world, model, true, false, false, -1, step);
      EXPECT_EQ(replayed.replays, steps - 1);
      EXPECT_EQ(replayed.losses, issued.losses);
      EXPECT_EQ(replayed.norms, issued.norms);
      EXPECT_EQ(replayed.checksum, issued.checksum);
    }
  }
}

// While a step runs the next one's inputs are loaded; then AdamW's corrections, the seed of dropout
// and the vote to stop are left.
TEST(Replays, FindTheirInputsLoaded) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& model : models(world.size())) {
    const Seen seen = run(world, model, true);
    ASSERT_EQ(seen.changed_before_wait.size(), static_cast<size_t>(steps - 1));
    ASSERT_EQ(seen.changed_after_wait.size(), static_cast<size_t>(steps - 2));
    for (const int64_t bytes : seen.changed_before_wait) EXPECT_GT(bytes, 28);
    for (const int64_t bytes : seen.changed_after_wait) EXPECT_LE(bytes, 28);
  }
}

TEST(Replays, GiveTheBitsOfSteps) {
  MpiWorld world(nullptr, nullptr);
  for (const SmallModel& model : models(world.size())) {
    SCOPED_TRACE(testing::Message()
                 << model.family << " " << model.compute << " " << model.recompute << " "
                 << model.offload << " zero " << model.zero_stage << " tensor "
                 << model.tensor_parallel << " dropout " << model.dropout);
    const Seen issued = run(world, model, false), replayed = run(world, model, true);
    EXPECT_EQ(issued.recordings, 0);
    EXPECT_EQ(replayed.recordings, InputMemory::num_sets);
    EXPECT_EQ(replayed.replays, steps - 1);  // the recorded step is run by its first replay
    EXPECT_EQ(replayed.losses, issued.losses);
    EXPECT_EQ(replayed.norms, issued.norms);
    EXPECT_EQ(replayed.region_s, issued.region_s);
    EXPECT_EQ(replayed.checksum, issued.checksum);
  }
}

// Each mark of a recorded step is a node of its graph: a further micro-batch has one where its
// forward pass begins and one where its backward pass does, and two around each wait for messages.
// Issued, it has marks per region.
TEST(Replays, MarkRegionsInTheFirstTaskOfAProgram) {
  MpiWorld world(nullptr, nullptr);
  SmallModel model = models(world.size()).front();
  model.micro_batch = 1;
  const auto further = [&](bool replay) {
    int events[2];
    for (const int64_t micro_batches : {7, 8}) {
      model.global_batch = micro_batches * world.size();
      events[micro_batches - 7] = run(world, model, replay).events;
    }
    return events[1] - events[0];
  };
  const int replayed = further(true), issued = further(false);
  if (world.size() == 1)
    EXPECT_EQ(replayed, 2);
  else
    EXPECT_EQ(replayed % 2, 0);
  EXPECT_GT(issued, replayed + 20);
}

// A device that refuses in the end, be it of one rank, has run nothing: the step is issued on all
// ranks, and so are those after it.
TEST(Replays, RefusedStepsAreIssued) {
  MpiWorld world(nullptr, nullptr);
  const SmallModel model = models(world.size()).front();
  const bool refuses = world.rank() == world.size() - 1;
  const Seen issued = run(world, model, false), refused = run(world, model, true, false, refuses);
  EXPECT_EQ(refused.refusal,
            refuses ? "this device records nothing" : "the device of another rank refused");
  EXPECT_EQ(refused.recordings, refuses ? 1 : InputMemory::num_sets);
  EXPECT_EQ(refused.replays, 0);
  EXPECT_EQ(refused.losses, issued.losses);
  EXPECT_EQ(refused.region_s, issued.region_s);
  EXPECT_EQ(refused.checksum, issued.checksum);
  EXPECT_THROW(run(world, model, true, true, refuses), Error);
}

TEST(Replays, WhatTheDeviceCannotRecordIsAnObstacle) {
  const auto obstacle = [](const SmallModel& m, CommLibrary comm) {
    Config config = resolved_config(m);
    config.run.comm = comm;
    return replay_obstacle(make_plan(config, m.ranks(), 0));
  };
  SmallModel m = models(1).front();
  m.dropout = 0.1;
  EXPECT_EQ(obstacle(m, CommLibrary::mpi), "");
  Config changing = resolved_config(m);
  changing.convergence.lr_warmup_steps = 2;
  EXPECT_EQ(replay_obstacle(make_plan(changing, 1, 0)), "");
  m.data_parallel = 2;
  EXPECT_EQ(obstacle(m, CommLibrary::nccl), "");
  EXPECT_NE(obstacle(m, CommLibrary::mpi).find("comm = 'mpi'"), std::string::npos);
  m.pipeline_parallel = 2;
  EXPECT_NE(obstacle(m, CommLibrary::nccl).find("from rank to rank"), std::string::npos);
  m.pipeline_parallel = m.data_parallel = 1;
  m.context_parallel = 2;
  EXPECT_NE(obstacle(m, CommLibrary::nccl).find("from rank to rank"), std::string::npos);
  m.context_parallel = 1;
  m.offload = "optimizer";
  m.offload_target = "file";
  EXPECT_NE(obstacle(m, CommLibrary::mpi).find("offload_target"), std::string::npos);
  m.offload_target = "host";
  EXPECT_EQ(obstacle(m, CommLibrary::mpi), "");
  m.offload_update = "host";
  EXPECT_NE(obstacle(m, CommLibrary::mpi).find("offload_update"), std::string::npos);
  m.offload = "none";
  m.offload_update = "device";
  m.device = "host";
  EXPECT_NE(obstacle(m, CommLibrary::mpi).find("device = 'host'"), std::string::npos);
}

}  // namespace gptbench
