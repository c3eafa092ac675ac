// Queues and events of a GPU: streams and CUDA events. Messages over MPI have queues of another
// kind (cuda/staged_queue.h); an event knows on which kind it was recorded.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/device.h"
#include "device/host_queue.h"

namespace gptbench {

class CudaEvent final : public Event {
 public:
  CudaEvent();
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  // What it was last recorded on; an event of neither has completed.
  void set_stream_point(cudaStream_t stream);
  void set_host_point(HostQueue& queue);

  // Later work of `stream` starts once the event has completed; blocks the caller where it was
  // recorded on a queue that the host drives.
  void make_wait(cudaStream_t stream) const;
  // Whether it has completed; drives nothing.
  bool completed() const;
  // The queue that the host drives, where it was recorded on one, and the ticket there; else null.
  HostQueue* host_queue() const { return recorded_ == Recorded::host ? host_queue_ : nullptr; }
  uint64_t host_ticket() const { return host_ticket_; }
  // Blocks until it has.
  void wait_on_host() const;

 private:
  enum class Recorded { never, stream, host };
  Recorded recorded_ = Recorded::never;
  cudaEvent_t event_ = nullptr;
  int recording_ = 0;  // that it was recorded in (cuda/cuda_recording.h)
  HostQueue* host_queue_ = nullptr;
  uint64_t host_ticket_ = 0;
};

// Asked several times a second while the host waits for a stream: check() throws Error(Exit::peer)
// where waiting is in vain. give_up() ends what waits for peers on any stream: freeing memory,
// which the end of a run does, waits for all of them. Lives in the list from construction to
// destruction.
class StreamWatch {
 public:
  StreamWatch();
  virtual ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;
  virtual void check() const = 0;
  virtual void give_up() = 0;
};
void give_up_watched_streams();

// What a peer that does not answer is given before the run ends.
constexpr double peer_timeout_s = 600.0;

// Calls `work`; where it throws, all watches give up.
template <class Work>
void or_give_up(const Work& work) {
  try {
    work();
  } catch (...) {
    give_up_watched_streams();
    throw;
  }
}

class CudaQueue final : public Queue {
 public:
  CudaQueue();
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  void record(Event& event) override;
  void wait(const Event& event) override;
  // Throws Error(Exit::peer) where a watch does, and after peer_timeout_s where there are watches.
  void synchronize() override;
  cudaStream_t stream() const { return stream_; }

 private:
  void wait_watched() const;

  cudaStream_t stream_ = nullptr;
};

// The stream of a queue that kernels are given.
inline cudaStream_t stream_of(Queue& queue) {
  return static_cast<CudaQueue&>(queue).stream();
}

}  // namespace gptbench
