// A device that passes everything on to another, for tests that change one answer of it.
#pragma once

#include <memory>
#include <string>

#include "deck/config.h"
#include "device/device.h"

namespace gptbench {

class WrappedDevice : public Device {
 public:
  explicit WrappedDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  const DeviceInfo& info() const override { return inner_->info(); }
  MemoryOffer memory_offer() const override { return inner_->memory_offer(); }
  std::unique_ptr<Queue> make_queue(const std::string& name) override {
    return inner_->make_queue(name);
  }
  std::unique_ptr<Queue> make_host_queue() override { return inner_->make_host_queue(); }
  std::unique_ptr<Event> make_event() override { return inner_->make_event(); }
  void upload(Queue& queue, void* device, const void* host, int64_t bytes) override {
    inner_->upload(queue, device, host, bytes);
  }
  void download(Queue& queue, void* host, const void* device, int64_t bytes) override {
    inner_->download(queue, host, device, bytes);
  }
  void fill_zero(Queue& queue, void* device, int64_t bytes) override {
    inner_->fill_zero(queue, device, bytes);
  }
  void copy(Queue& queue, void* to, const void* from, int64_t bytes) override {
    inner_->copy(queue, to, from, bytes);
  }
  const KernelTable& kernels(ComputeType compute) const override {
    return inner_->kernels(compute);
  }
  const KernelTable& host_kernels(ComputeType compute) const override {
    return inner_->host_kernels(compute);
  }

 protected:
  void* take(int64_t bytes) override { return inner_->allocate(bytes); }
  void give(void* memory, int64_t bytes) override { inner_->release(memory, bytes); }

 private:
  std::unique_ptr<Device> inner_;
};

// Refuses a request for memory: the one of this number, from 0; none of -1.
class StingyDevice final : public WrappedDevice {
 public:
  explicit StingyDevice(int refused)
      : WrappedDevice(make_host_device(DeviceKind::ref)), refused_(refused) {}
  int64_t bytes() const { return held().device_bytes + held().host_bytes; }

 private:
  void* take(int64_t bytes) override {
    return calls_++ == refused_ ? nullptr : WrappedDevice::take(bytes);
  }

  int calls_ = 0, refused_ = -1;
};

}  // namespace gptbench
