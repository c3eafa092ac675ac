#include "cuda/cuda_recording.h"

#include <algorithm>
#include <utility>

#include "cuda/cuda_error.h"
#include "cuda/cuda_queue.h"

namespace gptbench {
namespace {

int recordings = 0;
bool recording = false;
cudaStream_t origin = nullptr;               // of the recording under way
std::vector<std::function<void()>> on_host;  // of the same

std::vector<CudaRecording*>& graphs() {
  static std::vector<CudaRecording*> instance;
  return instance;
}

}  // namespace

int current_recording() {
  return recording ? recordings : 0;
}

// Relaxed: libraries may set attributes of kernels or load one that they have not run yet.
void CudaRecorder::begin(Queue& queue) {
  GPTBENCH_CUDA(cudaStreamBeginCapture(stream_of(queue), cudaStreamCaptureModeRelaxed));
  ++recordings;
  recording = true;
  origin = stream_of(queue);
  on_host.clear();
}

std::unique_ptr<Recording> CudaRecorder::end(Queue& queue) {
  return std::make_unique<CudaRecording>(stream_of(queue));
}

void before_each_replay(std::function<void()> work) {
  on_host.push_back(std::move(work));
}

CudaRecording::CudaRecording(cudaStream_t stream) {
  recording = false;
  on_host_.swap(on_host);
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  if (ended != cudaSuccess) cudaGetLastError();  // reported here, not by the next call
  check_cuda(ended, "cudaStreamEndCapture");
  const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  if (status != cudaSuccess) cudaGetLastError();
  check_cuda(status, "cudaGraphInstantiate");
  const cudaError_t uploaded = cudaGraphUpload(executable_, stream);
  if (uploaded == cudaSuccess) {
    graphs().push_back(this);
    return;
  }
  cudaGetLastError();
  drop();
  check_cuda(uploaded, "cudaGraphUpload");
}

CudaRecording::~CudaRecording() {
  graphs().erase(std::find(graphs().begin(), graphs().end(), this));
  drop();
}

void CudaRecording::drop() {
  if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  executable_ = nullptr;
}

void drop_recordings() {
  for (CudaRecording* graph : graphs()) graph->drop();
  if (!recording) return;
  recording = false;
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(origin, &graph) == cudaSuccess)
    cudaGraphDestroy(graph);
  else
    cudaGetLastError();  // it is not wanted
}

void CudaRecording::replay(Queue& queue) {
  if (executable_ == nullptr)
    throw Error(Exit::peer, "a recorded step was given up after an earlier error");
  for (const std::function<void()>& work : on_host_) work();
  GPTBENCH_CUDA(cudaGraphLaunch(executable_, stream_of(queue)));
}

}  // namespace gptbench
