#include "cuda/cuda_recording.h"

#include "cuda/cuda_error.h"
#include "cuda/cuda_queue.h"

namespace gptbench {
namespace {

int recordings = 0;
bool recording = false;

}  // namespace

int current_recording() {
  return recording ? recordings : 0;
}

// Relaxed: libraries may set attributes of kernels or load one that they have not run yet.
void begin_capture(cudaStream_t stream) {
  GPTBENCH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  ++recordings;
  recording = true;
}

CudaRecording::CudaRecording(cudaStream_t stream) {
  recording = false;
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  if (ended != cudaSuccess) cudaGetLastError();  // reported here, not by the next call
  check_cuda(ended, "cudaStreamEndCapture");
  const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  if (status != cudaSuccess) cudaGetLastError();
  check_cuda(status, "cudaGraphInstantiate");
}

CudaRecording::~CudaRecording() {
  cudaGraphExecDestroy(executable_);
}

void CudaRecording::replay(Queue& queue) {
  GPTBENCH_CUDA(cudaGraphLaunch(executable_, stream_of(queue)));
}

}  // namespace gptbench
