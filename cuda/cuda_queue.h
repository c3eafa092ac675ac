// Queues and events of a GPU: streams and CUDA events. Messages over MPI have queues of another
// kind (cuda/staged_queue.h); an event knows on which kind it was recorded.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "device/device.h"
#include "device/host_queue.h"

namespace gptbench {

class AttentionLibrary;
class CublasLtGemm;

class CudaEvent final : public Event {
 public:
  CudaEvent();
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  // Where it was last recorded; an event recorded on neither has completed.
  void set_stream_point(cudaStream_t stream);
  void set_host_point(HostQueue& queue);
  void set_completed() { recorded_ = Recorded::never; }

  // Later work of `stream` starts once the event has completed; blocks the caller where it was
  // recorded on a queue that the host drives.
  void make_wait(cudaStream_t stream) const;
  // Blocks the caller until the event has completed.
  void synchronize() const;
  // Whether it has completed; drives nothing.
  bool completed() const;
  // The queue that the host drives, where it was recorded on one, and the ticket there; else null.
  HostQueue* host_queue() const { return recorded_ == Recorded::host ? host_queue_ : nullptr; }
  uint64_t host_ticket() const { return host_ticket_; }

 private:
  enum class Recorded { never, stream, host };
  Recorded recorded_ = Recorded::never;
  cudaEvent_t event_ = nullptr;
  int recording_ = 0;  // that it was recorded in (cuda/cuda_recording.h)
  HostQueue* host_queue_ = nullptr;
  uint64_t host_ticket_ = 0;
};

// Libraries that kernels may call, those of the queue's device.
struct CudaLibraries {
  CublasLtGemm* gemms = nullptr;          // null: linear_* are not called
  AttentionLibrary* attention = nullptr;  // null: attention is our own kernels alone
};

class CudaQueue final : public Queue {
 public:
  explicit CudaQueue(const CudaLibraries& libraries = {});
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  void record(Event& event) override;
  void wait(const Event& event) override;
  // Throws Error(Exit::peer) as wait_watched() does (cuda/stream_watch.h).
  void synchronize() override;
  void limit_backlog() override;
  cudaStream_t stream() const { return stream_; }
  const CudaLibraries& libraries() const { return libraries_; }

 private:
  CudaLibraries libraries_;
  cudaStream_t stream_ = nullptr;
  // For limit_backlog(): how often it was called, and events in the stream, one after every
  // calls_per_point calls.
  static constexpr int64_t calls_per_point = 64;
  std::array<CudaEvent, 4> points_;
  int64_t calls_ = 0;
};

// For kernels of the host on page-locked memory, which run at once in the calling thread.
class HostKernelQueue final : public Queue {
 public:
  void record(Event& event) override { static_cast<CudaEvent&>(event).set_completed(); }
  void wait(const Event& event) override { static_cast<const CudaEvent&>(event).synchronize(); }
  void synchronize() override {}
};

// Stream and libraries of a queue that kernels are called with.
cudaStream_t stream_of(Queue& queue);
const CudaLibraries& libraries_of(Queue& queue);

}  // namespace gptbench
