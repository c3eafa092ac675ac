// What is known of a device before the first step. The machine needs no GPU: the device is a host
// under the name of one.
#include "run/sensing.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

class NamedGpu final : public WrappedDevice {
 public:
  NamedGpu(const std::string& model, int64_t memory_bytes)
      : WrappedDevice(make_host_device(DeviceKind::ref)), memory_bytes_(memory_bytes) {
    info_.kind = DeviceKind::cuda;
    info_.model = model;
  }
  const DeviceInfo& info() const override { return info_; }
  MemoryOffer memory_offer() const override { return {memory_bytes_, memory_bytes_}; }

 private:
  DeviceInfo info_;
  int64_t memory_bytes_;
};

// Facts on rank 0; empty on the others.
DeviceFacts facts_of(MpiWorld& world, const std::string& model, int64_t memory_bytes) {
  const NamedGpu device(model, memory_bytes);
  return Sensing(world, device).device_facts(world, device);
}

// NVML knows the GPU around a slice, and is not there on every machine.
TEST(Sensing, AGpuHasTheNameThatCudaReports) {
  MpiWorld world(nullptr, nullptr);
  const DeviceFacts whole = facts_of(world, "NVIDIA H100 80GB HBM3", 79 * GiB);
  const std::string name_of_slice = "NVIDIA H100 80GB HBM3 MIG 3g.40gb";
  const DeviceFacts slice = facts_of(world, name_of_slice, 40 * GiB);
  if (world.rank() != 0) return;
  EXPECT_EQ(whole.reported, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(whole.name, "h100_80gb");
  EXPECT_EQ(slice.reported, name_of_slice);
  EXPECT_EQ(slice.name, name_of_slice);
}

}  // namespace
}  // namespace gptbench
