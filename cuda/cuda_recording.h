// Recorded steps: CUDA graphs.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <vector>

#include "device/device.h"

namespace gptbench {

// Which recording is under way in this process, from 1; 0: none. Events of earlier ones, or of
// none, have completed when it begins (Recorder).
int current_recording();

// `work` is done on the host, in the order of these calls, each time before the recording under way
// is replayed.
void before_each_replay(std::function<void()> work);

// Ends a recording under way and gives up all graphs; one that is being replayed goes when it has
// ended. None can be replayed any more.
void drop_recordings();

class CudaRecording final : public Recording {
 public:
  // Ends the capture that began on `stream`, and takes the memory that replays need. Throws
  // Error(Exit::peer) or Error(Exit::out_of_memory).
  explicit CudaRecording(cudaStream_t stream);
  ~CudaRecording() override;
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  // Throws Error(Exit::peer) where it was dropped.
  void replay(Queue& queue) override;

 private:
  friend void drop_recordings();
  void drop();

  cudaGraphExec_t executable_ = nullptr;
  std::vector<std::function<void()>> on_host_;
};

class CudaRecorder final : public Recorder {
 public:
  void begin(Queue& queue) override;
  std::unique_ptr<Recording> end(Queue& queue) override;
};

}  // namespace gptbench
