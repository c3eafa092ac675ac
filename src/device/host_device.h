// The host as a device (kinds `host` and `ref`), made by make_host_device() of device.h. Its queues
// and events are HostQueue and HostEvent (host_queue.h); its kernels are those of host/kernels.h,
// or of ref/kernels.h for `ref`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/host/gemm_onednn.h"
#include "device/host_queue.h"

namespace gptbench {

// One selection: how large bf16 GEMMs are computed, "bf16_products=library" or "=converted"
// (gemm_onednn.h). Timed where a plan has such GEMMs.
class HostAutotuning final : public Autotuning {
 public:
  // `times`: select() may time GEMMs.
  explicit HostAutotuning(bool times) : times_(times) {}

  void select(const Plan& plan) override;
  void reuse(const std::string& text) override;
  std::string selected() override;
  const Bf16Products* used() const { return &used_; }

 private:
  bool times_;
  std::optional<Bf16Products> selected_;
  Bf16Products used_ = Bf16Products::library;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(DeviceKind kind);

  // Threads of the kernels are those of Kokkos; 1 for `ref`.
  const DeviceInfo& info() const override { return info_; }

  bool is_host_memory() const override { return true; }
  MemoryOffer memory_offer() const override;

  std::unique_ptr<Queue> make_queue(const std::string& name) override;
  std::unique_ptr<Event> make_event() override;

  void upload(Queue& queue, void* device, const void* host, int64_t bytes) override {
    copy(queue, device, host, bytes);
  }
  void download(Queue& queue, void* host, const void* device, int64_t bytes) override {
    copy(queue, host, device, bytes);
  }
  // Touches pages from the threads that kernels use.
  void fill_zero(Queue& queue, void* device, int64_t bytes) override;

  void copy(Queue& queue, void* to, const void* from, int64_t bytes) override;

  const KernelTable& kernels(ComputeType compute) const override;

  Autotuning& autotuning() override { return autotuning_; }

 private:
  // Anonymous pages, huge where the system grants them; untouched pages take no memory.
  void* take(int64_t bytes) override;
  void give(void* memory, int64_t bytes) override;

  std::vector<HostQueue*> queues_;  // driven together
  DeviceInfo info_;
  HostAutotuning autotuning_;
};

}  // namespace gptbench
