// The ceiling that two ranks measure at the same time.
#include <gtest/gtest.h>

#include "base/units.h"
#include "configs.h"
#include "run/ceiling.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

// Offers so much memory.
class OfferingDevice final : public WrappedDevice {
 public:
  explicit OfferingDevice(int64_t bytes)
      : WrappedDevice(make_host_device(DeviceKind::host)), bytes_(bytes) {}
  MemoryOffer memory_offer() const override { return {bytes_, bytes_}; }

 private:
  int64_t bytes_;
};

double measured(MpiWorld& world, int64_t offer_of_rank_1) {
  SmallModel model;
  model.device = "host";
  model.data_parallel = world.size();
  const Plan plan = make_plan(resolved_config(model), world.size(), world.rank());
  OfferingDevice device(world.rank() == 1 ? offer_of_rank_1 : GiB);
  return measure_ceiling(world, device, plan);
}

TEST(Ceiling, IsNoneWhereOneRankHasNoMemory) {
  MpiWorld world(nullptr, nullptr);
  ASSERT_EQ(world.size(), 2);
  const double with_memory = measured(world, GiB), without = measured(world, KiB);
  if (world.rank() != 0) return;
  EXPECT_GT(with_memory, 0.0);
  EXPECT_EQ(without, 0.0);
}

}  // namespace
}  // namespace gptbench
