// Recorded steps: CUDA graphs.
#pragma once

#include <cuda_runtime_api.h>

#include "device/device.h"

namespace gptbench {

// Which recording is under way in this process, from 1; 0: none. Events of earlier ones, or of
// none, have completed when it begins (Device::begin_recording).
int current_recording();

void begin_capture(cudaStream_t stream);

class CudaRecording final : public Recording {
 public:
  // Ends the capture that began on `stream`. Throws Error(Exit::peer).
  explicit CudaRecording(cudaStream_t stream);
  ~CudaRecording() override;
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  void replay(Queue& queue) override;

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace gptbench
