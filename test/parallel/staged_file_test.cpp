// What a device with memory of its own offloads to a file goes by way of staging memory, in pieces,
// and comes back as it was: on the host, whose memory stands for the device's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>

#include "device/host_queue.h"
#include "plan/staging.h"
#include "train.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

class Staging final : public StagingQueue {
 public:
  explicit Staging(int64_t bytes) : memory_(static_cast<size_t>(bytes)) {}
  void record(Event& event) override { host_.record(event); }
  void wait(const Event& event) override { host_.wait(event); }
  void synchronize() override { host_.synchronize(); }
  void progress() override { host_.progress(); }
  HostQueue& host() override { return host_; }
  char* staging() const override { return const_cast<char*>(memory_.data()); }
  int64_t staging_bytes() const override { return static_cast<int64_t>(memory_.size()); }
  void copy(void* to, const void* from, int64_t bytes) override {
    const auto within = [&](const void* p) {
      const char* const at = static_cast<const char*>(p);
      return at >= memory_.data() && at + bytes <= memory_.data() + memory_.size();
    };
    EXPECT_NE(within(to), within(from));
    copies_.emplace_back(to, from, static_cast<size_t>(bytes));
    host_.add(copies_.back());
  }
  size_t num_copies() const { return copies_.size(); }

 private:
  class Copy final : public PendingWork {
   public:
    Copy(void* to, const void* from, size_t bytes) : to_(to), from_(from), bytes_(bytes) {}
    bool test() override {
      std::memcpy(to_, from_, bytes_);
      return true;
    }

   private:
    void* to_;
    const void* from_;
    size_t bytes_;
  };
  HostQueue host_;
  std::vector<char> memory_;
  std::deque<Copy> copies_;
};

class DeviceOfItsOwn final : public WrappedDevice {
 public:
  explicit DeviceOfItsOwn(int64_t piece_bytes)
      : WrappedDevice(make_host_device(DeviceKind::host)), piece_bytes_(piece_bytes) {}
  std::unique_ptr<Queue> make_file_queue(const std::string&, int64_t bytes) override {
    asked_bytes = bytes;
    auto queue = std::make_unique<Staging>(std::min(piece_bytes_, bytes));
    staging = queue.get();
    return queue;
  }
  int64_t asked_bytes = 0;
  const Staging* staging = nullptr;

 private:
  int64_t piece_bytes_;
};

struct Seen {
  std::vector<double> losses;
  uint64_t checksum = 0;
};

Seen run(const SmallModel& model, Device& device, const std::function<void()>& at_end) {
  Config config = resolved_config(model);
  config.output.directory = ".";
  const Plan plan =
      make_plan(config, 1, 0, device_traits(config.run.device, device.info().num_threads));
  const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, device, {}, *tokens);
  EXPECT_TRUE(engine.allocate());
  engine.initialise_weights();
  Seen seen;
  for (int step = 0; step < 3; ++step) seen.losses.push_back(engine.step(step, false).loss);
  seen.checksum = engine.checksum();
  at_end();
  return seen;
}

}  // namespace

TEST(StagedFile, HoldsWhatHostMemoryHolds) {
  SmallModel model = model_of("host", "bf16", 2, 5);
  model.layers = 4;
  model.recompute = "full";
  model.offload = "optimizer,parameters,activations";
  const auto host = make_host_device(DeviceKind::host);
  const Seen in_memory = run(model, *host, [] {});
  model.offload_target = "file";
  // Pieces of a fraction of a transfer, of an odd size, and whole ones.
  for (const int64_t piece_bytes : {1000, 4097, 1 << 30}) {
    SCOPED_TRACE(piece_bytes);
    DeviceOfItsOwn device(piece_bytes);
    const Seen staged = run(model, device, [&] {
      ASSERT_NE(device.staging, nullptr);
      EXPECT_GT(device.staging->num_copies(), 10u);
    });
    EXPECT_GT(device.asked_bytes, 4097);
    EXPECT_LE(device.asked_bytes, file_piece_bytes);
    EXPECT_EQ(staged.losses, in_memory.losses);
    EXPECT_EQ(staged.checksum, in_memory.checksum);
  }
}

}  // namespace gptbench
