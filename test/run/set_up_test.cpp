// What stands between a plan and its first step: messages that are too large for MPI, memory that
// cannot be allocated.
#include "run/set_up.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "comm/agree.h"
#include "configs.h"
#include "memory/budget.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

// One layer of 12 C^2 + 13 C parameters, in two replicas.
SmallModel one_layer(int64_t channels, int64_t zero_stage) {
  SmallModel m;
  m.layers = 1;
  m.hidden = channels;
  m.heads = 64;
  m.data_parallel = 2;
  m.zero_stage = zero_stage;
  return m;
}

// "" where no message is refused.
std::string refusal_of(const SmallModel& m) {
  try {
    check_message_sizes(make_plan(resolved_config(m), m.ranks(), 0));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "";
}

// A layer of 16,384 channels has 3.2e9 parameters. Each of two ranks holds 1.6e9 of them, fewer
// than 2^31, but the collective has them all.
TEST(MessageSizes, OfCollectivesAreThoseOfAllRanks) {
  EXPECT_EQ(refusal_of(one_layer(13312, 3)), "");  // 2.127e9, beside 2.147e9
  EXPECT_NE(refusal_of(one_layer(16384, 3)).find("all_gather along the shard axis has 32"),
            std::string::npos)
      << refusal_of(one_layer(16384, 3));
  EXPECT_NE(refusal_of(one_layer(16384, 2)).find("reduce_scatter along the shard axis has 32"),
            std::string::npos)
      << refusal_of(one_layer(16384, 2));
}

TEST(MessageSizes, AreBoundedByTensorParallelismPiecesAndNccl) {
  SmallModel m = one_layer(16384, 2);
  m.tensor_parallel = 2;
  EXPECT_EQ(refusal_of(m), "");
  EXPECT_EQ(refusal_of(one_layer(16384, 0)), "");  // all-reduces
  m = one_layer(16384, 3);
  m.comm = "nccl";
  EXPECT_EQ(refusal_of(m), "");
}

// A micro-batch has no part in the size of a unit's parameters. Of rows, 2^20 of 2,048 channels are
// too many.
TEST(MessageSizes, AdviceIsOnWhatTheyGrowWith) {
  const std::string of_parameters = refusal_of(one_layer(16384, 3));
  EXPECT_NE(of_parameters.find("use more tensor-parallel ranks"), std::string::npos)
      << of_parameters;
  EXPECT_EQ(of_parameters.find("micro_batch"), std::string::npos) << of_parameters;
  SmallModel m = one_layer(2048, 0);
  m.data_parallel = 1;
  m.tensor_parallel = 2;
  m.sequence_parallel = true;
  m.seq = 1 << 20;
  m.micro_batch = 1;
  const std::string of_rows = refusal_of(m);
  EXPECT_NE(of_rows.find("use a smaller batch.micro_batch_size"), std::string::npos) << of_rows;
}

// The last rank lacks memory for the first class, then for what libraries take.
TEST(Arenas, ARankSaysWhatItCannotAllocate) {
  MpiWorld world(nullptr, nullptr);
  SmallModel m;
  m.data_parallel = world.size();
  m.global_batch = world.size();
  const Plan plan = make_plan(resolved_config(m), world.size(), world.rank());
  const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
  const bool lacks = world.rank() == world.size() - 1;
  const auto missing = [&](int refused) {
    StingyDevice device(refused);
    Engine engine(plan, device, {}, *tokens);
    return take_arena(world, engine, device);
  };
  EXPECT_EQ(missing(-1), "");
  const std::string who = "rank " + std::to_string(world.size() - 1) + " cannot allocate ";
  const int64_t parameters = plan.class_bytes[static_cast<size_t>(MemoryClass::parameters)];
  EXPECT_EQ(missing(lacks ? static_cast<int>(MemoryClass::parameters) : -1),
            who + format_bytes(parameters) + " of class parameters");
  EXPECT_EQ(missing(lacks ? num_memory_classes - 1 : -1),  // behind all classes but `file`
            who + format_bytes(runtime_bytes_per_rank) + " that libraries take beside it");
}

// Queues of messages take page-locked memory on a GPU (cuda/staged_queue.h).
class QueuelessDevice final : public WrappedDevice {
 public:
  explicit QueuelessDevice(Exit code)
      : WrappedDevice(make_host_device(DeviceKind::ref)), code_(code) {}
  std::unique_ptr<Queue> make_queue(const std::string& name) override {
    if (code_ != Exit::ok) throw Error(code_, "no page-locked memory");
    return WrappedDevice::make_queue(name);
  }

 private:
  Exit code_;
};

// It is an outcome, after which a search for the largest batch goes on. Other errors stay errors.
TEST(Arenas, ARankSaysThatItHasNoMemoryForQueues) {
  MpiWorld world(nullptr, nullptr);
  SmallModel m;
  m.data_parallel = world.size();
  m.global_batch = world.size();
  const Plan plan = make_plan(resolved_config(m), world.size(), world.rank());
  const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
  const auto missing = [&](Exit code) {
    QueuelessDevice device(code);
    Engine engine(plan, device, {}, *tokens);
    return take_arena(world, engine, device);
  };
  const bool lacks = world.rank() == world.size() - 1;
  EXPECT_EQ(missing(lacks ? Exit::out_of_memory : Exit::ok),
            "rank " + std::to_string(world.size() - 1) +
                " cannot allocate its queues: no page-locked memory");
  EXPECT_THROW(missing(Exit::peer), Error);
}

// A device that would record steps, on a host without page-locked memory.
class UnlockedDevice final : public WrappedDevice, private Recorder {
 public:
  UnlockedDevice() : WrappedDevice(make_host_device(DeviceKind::host)) {}
  Recorder* recorder() override { return this; }

 private:
  void* take_host(int64_t) override { return nullptr; }
  void begin(Queue&) override {}
  std::unique_ptr<Recording> end(Queue&) override { return nullptr; }
};

// The replica with more sequences needs the most.
TEST(Graphs, MissingPageLockedMemoryIsStated) {
  MpiWorld world(nullptr, nullptr);
  SmallModel m;
  m.device = "cuda";
  m.comm = "nccl";
  m.seq = 64;
  m.data_parallel = world.size();
  const Plan plan = make_plan(resolved_config(m), world.size(), world.rank());
  const int64_t largest = world.max(replayed_input_bytes(plan));
  const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
  UnlockedDevice device;
  Engine engine(plan, device, {}, *tokens);
  try {
    allow_graphs(world, engine, plan);
    FAIL() << "nothing was missing";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), Exit::out_of_memory);
    EXPECT_EQ(std::string(error.what()),
              "no page-locked memory for the inputs of captured steps, " + format_bytes(largest) +
                  " per rank; use run.cuda_graph = 'false'");
  }
}

// A full disk of one node, or of all: one message, and all ranks end in order.
TEST(Arenas, AFileThatCannotBeCreatedIsAgreedOn) {
  MpiWorld world(nullptr, nullptr);
  SmallModel m;
  m.data_parallel = world.size();
  m.global_batch = world.size();
  m.offload = "optimizer";
  m.offload_target = "file";
  Config config = resolved_config(m);
  const int64_t last = world.size() - 1;
  config.output.directory = world.rank() == last ? "/dev/null/no_directory" : ".";
  const Plan plan = make_plan(config, world.size(), world.rank());
  const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
  const std::unique_ptr<Device> device = make_host_device(DeviceKind::ref);
  Engine engine(plan, *device, {}, *tokens);
  try {
    take_arena(world, engine, *device);
    FAIL() << "a file was created";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), Exit::io);
    const std::string what = error.what();
    EXPECT_EQ(what.find("rank " + std::to_string(last) + ": "), 0U) << what;
    EXPECT_NE(what.find("/dev/null/no_directory"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace gptbench
