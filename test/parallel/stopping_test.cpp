// What one rank meets in a step ends the run on all, and no rank waits for another.
#include <gtest/gtest.h>

#include <new>

#include "base/clock.h"
#include "base/error.h"
#include "train.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

// Synthetic tokens but for one sequence that cannot be read.
class BrokenSource final : public TokenSource {
 public:
  BrokenSource(const Plan& plan, int64_t broken)
      : inner_(make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid)),
        broken_(broken) {}
  std::string description() const override { return "broken"; }
  void read(int64_t sequence, int32_t* tokens) const override {
    if (sequence == broken_ || (all_behind && sequence > broken_))
      throw Error(Exit::io, "sequence " + std::to_string(sequence) + " cannot be read");
    inner_->read(sequence, tokens);
  }
  bool all_behind = false;

 private:
  std::unique_ptr<TokenSource> inner_;
  int64_t broken_;
};

struct Replicas {
  explicit Replicas(MpiWorld& world)
      : config([&] {
          SmallModel model = model_of("ref", "fp32", 1, 2 * world.size() + 1);
          model.data_parallel = world.size();
          return resolved_config(model);
        }()),
        plan(make_plan(config, world.size(), world.rank())),
        device(make_host_device(DeviceKind::ref)),
        connections(connect(world, plan)) {}

  Config config;
  Plan plan;
  std::unique_ptr<Device> device;
  Connections connections;
};

TEST(Stopping, OneVoteStopsAll) {
  MpiWorld world(nullptr, nullptr);
  Replicas replicas(world);
  const BrokenSource tokens(replicas.plan, -1);
  Engine engine(replicas.plan, *replicas.device, replicas.connections.table, tokens);
  ASSERT_TRUE(engine.allocate());
  engine.initialise_weights();
  EXPECT_FALSE(engine.step(0, false).stop);
  EXPECT_TRUE(engine.step(1, world.rank() == world.size() - 1).stop);
  EXPECT_FALSE(engine.step(2, false).stop);  // votes are cast anew in every step
  EXPECT_EQ(engine.failure().reason(), "");
}

// Sequence `global batch + k` is read in step 1, by one rank, in its first or a later micro-batch.
TEST(Stopping, UnreadableTokensStopAll) {
  MpiWorld world(nullptr, nullptr);
  Replicas replicas(world);
  const int64_t global = replicas.config.batch.global_batch_size;
  for (const int64_t k : {int64_t{0}, global / 2, global - 1}) {
    const BrokenSource tokens(replicas.plan, global + k);
    Engine engine(replicas.plan, *replicas.device, replicas.connections.table, tokens);
    ASSERT_TRUE(engine.allocate());
    engine.initialise_weights();
    EXPECT_FALSE(engine.step(0, false).stop);
    EXPECT_EQ(engine.failure().reason(), "");
    EXPECT_TRUE(engine.step(1, false).stop) << "sequence " << k;
    EXPECT_EQ(world.sum(engine.failure().reason().empty() ? int64_t{0} : int64_t{1}), 1);
  }
}

// A rank with several failures reports the first: what follows may be its consequence.
TEST(Stopping, TheFirstFailureIsTold) {
  MpiWorld world(nullptr, nullptr);
  Replicas replicas(world);
  BrokenSource tokens(replicas.plan, 0);
  tokens.all_behind = true;
  Engine engine(replicas.plan, *replicas.device, replicas.connections.table, tokens);
  ASSERT_TRUE(engine.allocate());
  engine.initialise_weights();
  EXPECT_TRUE(engine.step(0, false).stop);
  const int64_t first = replicas.plan.micro_batches[0].first;
  EXPECT_EQ(engine.failure().reason(), "sequence " + std::to_string(first) + " cannot be read");
}

// Memory that a kernel or the node lacks on one rank, in whatever operation, ends the run on all.
class ShortOfMemory final : public WrappedDevice {
 public:
  ShortOfMemory() : WrappedDevice(make_host_device(DeviceKind::ref)) {}
  // Copying tokens to the device stands for any kernel that asks for memory.
  void upload(Queue& queue, void* device, const void* host, int64_t bytes) override {
    if (kernels_fail && bytes > 8) throw std::bad_alloc();
    WrappedDevice::upload(queue, device, host, bytes);
  }
  MemoryOffer memory_offer() const override {
    MemoryOffer offer = WrappedDevice::memory_offer();
    if (node_is_full) offer.available_bytes = 1 << 20;
    return offer;
  }
  bool kernels_fail = false, node_is_full = false;
};

TEST(Stopping, MemoryThatRunsOutStopsAll) {
  MpiWorld world(nullptr, nullptr);
  Replicas replicas(world);
  const BrokenSource tokens(replicas.plan, -1);
  for (const bool by_kernel : {true, false}) {
    ShortOfMemory device;
    Engine engine(replicas.plan, device, replicas.connections.table, tokens);
    ASSERT_TRUE(engine.allocate());
    engine.initialise_weights();
    EXPECT_FALSE(engine.step(0, false).stop);
    const bool mine = world.rank() == world.size() - 1;
    device.kernels_fail = mine && by_kernel;
    device.node_is_full = mine && !by_kernel;
    // The node is asked every half second.
    bool stopped = false;
    const double until_s = now_s() + 20.0;
    for (int64_t step = 1; !stopped && world.max(now_s() - until_s) < 0.0; ++step)
      stopped = engine.step(step, false).stop;
    EXPECT_TRUE(stopped);
    EXPECT_EQ(engine.failure().code(), mine ? Exit::out_of_memory : Exit::ok);
    EXPECT_EQ(engine.failure().reason().empty(), !mine);
  }
}

// Memory for the update of the parameters, the last part of a step, runs out on some rank.
class ShortOfMemoryForUpdates final : public WrappedDevice {
 public:
  ShortOfMemoryForUpdates() : WrappedDevice(make_host_device(DeviceKind::ref)) {
    table_ = WrappedDevice::kernels(ComputeType::fp32);
    update = table_.adamw;
    table_.adamw = [](Queue& queue, const AdamW& arguments) {
      if (update_fails) throw std::bad_alloc();
      update(queue, arguments);
    };
  }
  const KernelTable& kernels(ComputeType) const override { return table_; }

  inline static bool update_fails = false;

 private:
  inline static void (*update)(Queue&, const AdamW&) = nullptr;
  KernelTable table_;
};

// The votes of the step have been summed by then: the rank that failed must not be the only one
// that stops.
TEST(Stopping, AFailureBehindTheVotesStopsAllInOneStep) {
  MpiWorld world(nullptr, nullptr);
  Replicas replicas(world);
  const BrokenSource tokens(replicas.plan, -1);
  ShortOfMemoryForUpdates device;
  Engine engine(replicas.plan, device, replicas.connections.table, tokens);
  ASSERT_TRUE(engine.allocate());
  engine.initialise_weights();
  EXPECT_FALSE(engine.step(0, false).stop);
  const bool mine = world.rank() == world.size() - 1;
  device.update_fails = mine;
  bool stopped = false;
  for (int64_t step = 1; !stopped && step < 3; ++step) {
    stopped = engine.step(step, false).stop;
    ASSERT_EQ(world.sum(int64_t{stopped}) % world.size(), 0) << "in step " << step;
  }
  EXPECT_TRUE(stopped);
  EXPECT_EQ(engine.failure().code(), mine ? Exit::out_of_memory : Exit::ok);
  device.update_fails = false;
}

// A NaN on one rank reaches loss and gradient norm of all: none goes on alone.
TEST(Stopping, NonFiniteValuesReachAllRanks) {
  MpiWorld world(nullptr, nullptr);
  Replicas replicas(world);
  replicas.plan.config.optimizer.lr = 1e30;
  const BrokenSource tokens(replicas.plan, -1);
  Engine engine(replicas.plan, *replicas.device, replicas.connections.table, tokens);
  ASSERT_TRUE(engine.allocate());
  engine.initialise_weights();
  EXPECT_TRUE(std::isfinite(engine.step(0, false).loss));
  StepResult result;
  for (int step = 1; step < 4; ++step) result = engine.step(step, false);
  EXPECT_FALSE(std::isfinite(result.loss) && std::isfinite(result.grad_norm));
}

}  // namespace
}  // namespace gptbench
