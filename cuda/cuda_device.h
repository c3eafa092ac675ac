// A GPU as a device (cuda/backend.h makes it). One per process.
#pragma once

#include <vector>

#include "cuda/backend.h"
#include "cuda/cuda_autotuning.h"
#include "cuda/cuda_queue.h"
#include "cuda/cuda_recording.h"
#include "cuda/pinned_staging.h"
#include "device/device.h"

namespace gptbench {

// Unique among the GPUs of all nodes.
std::string gpu_identity(int ordinal);

class CudaDevice final : public Device {
 public:
  // Opens GPU `ordinal` and makes it the current one.
  CudaDevice(int ordinal, const CudaOptions& options);

  // Description: "NVIDIA H200 (GPU 0, 132 SMs, compute capability 9.0), CUDA 13.0 (driver 13.0),
  // cuBLASLt 13.1.0".
  const DeviceInfo& info() const override { return info_; }

  MemoryOffer memory_offer() const override;

  std::unique_ptr<Queue> make_queue(const std::string& name) override;
  std::unique_ptr<Queue> make_message_queue(const std::string& name,
                                            int64_t staging_bytes) override;
  std::unique_ptr<Queue> make_file_queue(const std::string& name, int64_t staging_bytes) override;
  std::unique_ptr<Queue> make_host_queue() override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<Stopwatch> make_stopwatch() override;

  void upload(Queue& queue, void* device, const void* host, int64_t bytes) override;
  void download(Queue& queue, void* host, const void* device, int64_t bytes) override;
  void fill_zero(Queue& queue, void* device, int64_t bytes) override;
  void copy(Queue& queue, void* to, const void* from, int64_t bytes) override;

  Recorder* recorder() override { return &recorder_; }

  const KernelTable& kernels(ComputeType compute) const override;
  const KernelTable& host_kernels(ComputeType compute) const override;

  Autotuning& autotuning() override { return autotuning_; }

 private:
  void* take(int64_t bytes) override;
  void give(void* memory, int64_t bytes) override;
  // Page-locked.
  void* take_host(int64_t bytes) override;
  void give_host(void* memory, int64_t bytes) override;

  bool messages_by_mpi_;
  CudaAutotuning autotuning_;
  CudaRecorder recorder_;
  DeviceInfo info_;
  PinnedStaging staging_;
  std::vector<HostQueue*> staged_queues_;  // driven together
};

}  // namespace gptbench
