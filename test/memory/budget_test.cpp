#include "memory/budget.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "configs.h"
#include "plan/staging.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

// A node that offers as much as the test says.
class OfferingDevice final : public WrappedDevice {
 public:
  explicit OfferingDevice(int64_t available)
      : WrappedDevice(make_host_device(DeviceKind::ref)), available_(available) {}
  MemoryOffer memory_offer() const override { return {2 * available_, available_}; }

 private:
  int64_t available_;
};

Plan plan_of(const MpiWorld& world, double device_memory_gib) {
  SmallModel m;
  m.data_parallel = world.size();
  m.global_batch = 2 * world.size() + 1;
  Config config = resolved_config(m);
  config.memory.device_memory_gib = device_memory_gib;
  return make_plan(config, world.size(), world.rank());
}

TEST(Budget, NeedOfANodeIsThatOfItsRanks) {
  MpiWorld world(nullptr, nullptr);
  const Plan plan = plan_of(world, 0.0);
  const MemoryBudget budget = agree_on_memory(world, OfferingDevice(64 * GiB), plan);
  EXPECT_TRUE(budget.fits);
  EXPECT_EQ(budget.reason, "");
  EXPECT_EQ(budget.offer_bytes, 64 * GiB);
  EXPECT_EQ(budget.need_bytes, world.node_sum(total(plan.class_bytes) + runtime_bytes_per_rank));
}

// The first of three ranks and more scatters sums in memory of the MPI library.
TEST(Budget, ReduceScatterTakesTwoArrays) {
  MpiWorld world(nullptr, nullptr);
  SmallModel m;
  m.data_parallel = world.size();
  m.zero_stage = world.size() > 1 ? 1 : 0;
  m.global_batch = world.size();
  const Plan plan = make_plan(resolved_config(m), world.size(), world.rank());
  int64_t largest = 0;
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::reduce_scatter) largest = std::max(largest, payload_bytes(op, 0));
  EXPECT_EQ(largest > 0, world.size() > 1);
  const bool takes = world.size() > 2 && world.rank() == 0;
  const int64_t need = total(plan.class_bytes) + runtime_bytes_per_rank + (takes ? 2 * largest : 0);
  EXPECT_EQ(agree_on_memory(world, OfferingDevice(64 * GiB), plan).need_bytes,
            world.node_sum(need));
}

// One byte decides.
TEST(Budget, RefusesWhatTheNodeDoesNotOffer) {
  MpiWorld world(nullptr, nullptr);
  const Plan plan = plan_of(world, 0.0);
  const int64_t need = world.node_sum(total(plan.class_bytes) + runtime_bytes_per_rank);
  EXPECT_TRUE(agree_on_memory(world, OfferingDevice(need), plan).fits);
  const MemoryBudget budget = agree_on_memory(world, OfferingDevice(need - 1), plan);
  EXPECT_FALSE(budget.fits);
  EXPECT_NE(budget.reason.find("the node offers"), std::string::npos) << budget.reason;
}

// One rank that cannot stops all, and all know why.
TEST(Budget, OneNodeDecidesForAll) {
  MpiWorld world(nullptr, nullptr);
  const Plan plan = plan_of(world, 0.0);
  const bool poor = world.rank() == world.size() - 1;
  const MemoryBudget budget = agree_on_memory(world, OfferingDevice(poor ? 1 : 64 * GiB), plan);
  EXPECT_FALSE(budget.fits);
  EXPECT_NE(budget.reason.find("rank " + std::to_string(world.size() - 1)), std::string::npos)
      << budget.reason;
}

// One byte decides: a number of bytes over 2^30 is a double without rounding.
TEST(Budget, DeviceMemoryGibIsABoundOfTheArena) {
  MpiWorld world(nullptr, nullptr);
  const int64_t largest = world.max(device_total(plan_of(world, 0.0).class_bytes));
  const auto gib = [](int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(GiB);
  };
  const OfferingDevice device(64 * GiB);
  EXPECT_TRUE(agree_on_memory(world, device, plan_of(world, gib(largest))).fits);
  const MemoryBudget budget = agree_on_memory(world, device, plan_of(world, gib(largest - 1)));
  EXPECT_FALSE(budget.fits);
  EXPECT_NE(budget.reason.find("device_memory_gib"), std::string::npos) << budget.reason;
}

// A device with memory of its own, shared by pairs of ranks: what lies on it is held against its
// offer, and no longer against the node's.
class OwnMemoryDevice final : public WrappedDevice {
 public:
  OwnMemoryDevice(int64_t available, int64_t rank)
      : WrappedDevice(make_host_device(DeviceKind::ref)), available_(available) {
    info_.identity = "gpu" + std::to_string(rank / 2);
  }
  MemoryOffer memory_offer() const override { return {2 * available_, available_}; }
  const DeviceInfo& info() const override { return info_; }

 private:
  int64_t available_;
  DeviceInfo info_;
};

TEST(Budget, RanksOnOneDeviceShareItsMemory) {
  MpiWorld world(nullptr, nullptr);
  const Plan plan = plan_of(world, 0.0);
  const int64_t mine = device_total(plan.class_bytes);
  // The ranks of a pair have plans of the same size.
  const int64_t sharers = world.rank() / 2 == world.size() / 2 ? 1 : 2;
  const MemoryBudget budget =
      agree_on_memory(world, OwnMemoryDevice(sharers * mine, world.rank()), plan);
  EXPECT_EQ(ranks_of_memory(world, OwnMemoryDevice(mine, world.rank())), sharers);
  EXPECT_EQ(ranks_of_memory(world, OfferingDevice(mine)), world.node_size());
  EXPECT_TRUE(budget.fits) << budget.reason;
  EXPECT_EQ(budget.need_bytes, sharers * mine);
  EXPECT_EQ(budget.offer_bytes, sharers * mine);
  const MemoryBudget refused =
      agree_on_memory(world, OwnMemoryDevice(sharers * mine - 1, world.rank()), plan);
  EXPECT_FALSE(refused.fits);
  EXPECT_NE(refused.reason.find("ranks on the device of rank 0"), std::string::npos)
      << refused.reason;
}

// More than any node has: on the device it does not concern the node, in host memory the device.
TEST(Budget, TheNodeHoldsWhatIsNotOnTheDevice) {
  MpiWorld world(nullptr, nullptr);
  constexpr int64_t pib = int64_t{1} << 50;
  const OwnMemoryDevice device(4 * pib, world.rank());
  Plan plan = plan_of(world, 0.0);
  plan.class_bytes[static_cast<size_t>(MemoryClass::optimizer_state)] = pib;
  const MemoryBudget on_device = agree_on_memory(world, device, plan);
  EXPECT_TRUE(on_device.fits) << on_device.reason;
  std::swap(plan.class_bytes[static_cast<size_t>(MemoryClass::optimizer_state)],
            plan.class_bytes[static_cast<size_t>(MemoryClass::host)]);
  const MemoryBudget on_host = agree_on_memory(world, device, plan);
  EXPECT_FALSE(on_host.fits);
  EXPECT_NE(on_host.reason.find("the node offers"), std::string::npos) << on_host.reason;
  EXPECT_EQ(on_host.need_bytes, world.node_sum(pib + staging_bytes(plan) + runtime_bytes_per_rank));
}

// Messages by MPI pass through memory of the node, those of NCCL do not. The need of a node is seen
// where it is too large.
TEST(Budget, MessagesOfNcclPassNoHostMemory) {
  MpiWorld world(nullptr, nullptr);
  constexpr int64_t pib = int64_t{1} << 50;
  SmallModel m;
  m.data_parallel = world.size();
  m.zero_stage = world.size() > 1 ? 3 : 0;
  m.global_batch = world.size();
  EXPECT_EQ(staging_bytes(make_plan(resolved_config(m), world.size(), world.rank())) > 0,
            world.size() > 1);
  m.comm = "nccl";
  Plan plan = make_plan(resolved_config(m), world.size(), world.rank());
  plan.class_bytes[static_cast<size_t>(MemoryClass::host)] = pib;
  const MemoryBudget budget = agree_on_memory(world, OwnMemoryDevice(4 * pib, world.rank()), plan);
  EXPECT_FALSE(budget.fits);
  EXPECT_EQ(budget.need_bytes, world.node_sum(pib + runtime_bytes_per_rank));
}

// NCCL reduces on the device, without memory of the MPI library.
TEST(Budget, ReduceScatterOfNcclTakesNoArrays) {
  MpiWorld world(nullptr, nullptr);
  SmallModel m;
  m.comm = "nccl";
  m.data_parallel = world.size();
  m.zero_stage = world.size() > 1 ? 2 : 0;
  m.global_batch = world.size();
  const Plan plan = make_plan(resolved_config(m), world.size(), world.rank());
  const bool scatters = std::any_of(plan.ops.begin(), plan.ops.end(),
                                    [](const Op& op) { return op.kind == OpKind::reduce_scatter; });
  EXPECT_EQ(scatters, world.size() > 1);
  EXPECT_EQ(agree_on_memory(world, OfferingDevice(64 * GiB), plan).need_bytes,
            world.node_sum(total(plan.class_bytes) + runtime_bytes_per_rank));
}

}  // namespace
}  // namespace gptbench
