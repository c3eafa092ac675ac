#include "cuda/cuda_queue.h"

#include "cuda/attention_library.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_recording.h"
#include "cuda/stream_watch.h"

namespace gptbench {
CudaEvent::CudaEvent() {
  GPTBENCH_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

CudaEvent::~CudaEvent() {
  cudaEventDestroy(event_);
}

void CudaEvent::set_stream_point(cudaStream_t stream) {
  GPTBENCH_CUDA(cudaEventRecord(event_, stream));
  recorded_ = Recorded::stream;
  recording_ = current_recording();
}

void CudaEvent::set_host_point(HostQueue& queue) {
  host_queue_ = &queue;
  host_ticket_ = queue.added();
  recorded_ = Recorded::host;
}

void CudaEvent::make_wait(cudaStream_t stream) const {
  // When a recording begins or ends all that was enqueued before has completed, and an event of the
  // one side cannot be named on the other.
  if (recorded_ == Recorded::stream && recording_ != current_recording()) return;
  if (recorded_ == Recorded::stream) GPTBENCH_CUDA(cudaStreamWaitEvent(stream, event_, 0));
  if (recorded_ == Recorded::host) host_queue_->wait_until(host_ticket_);
}

void CudaEvent::synchronize() const {
  if (recorded_ == Recorded::stream) wait_watched(event_);
  if (recorded_ == Recorded::host) host_queue_->wait_until(host_ticket_);
}

bool CudaEvent::completed() const {
  if (recorded_ == Recorded::never) return true;
  if (recorded_ == Recorded::host) return host_queue_->completed(host_ticket_);
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // it counts as one
    return false;
  }
  check_cuda(status, "cudaEventQuery");
  return true;
}

CudaQueue::CudaQueue(const CudaLibraries& libraries) : libraries_(libraries) {
  GPTBENCH_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CudaQueue::~CudaQueue() {
  cudaStreamDestroy(stream_);
}

void CudaQueue::record(Event& event) {
  static_cast<CudaEvent&>(event).set_stream_point(stream_);
}

void CudaQueue::wait(const Event& event) {
  static_cast<const CudaEvent&>(event).make_wait(stream_);
}

// A stream takes about a thousand entries before a launch blocks; an operation is a few.
void CudaQueue::limit_backlog() {
  if (current_recording() != 0 || ++calls_ % calls_per_point != 0) return;
  CudaEvent& oldest = points_[static_cast<size_t>(calls_ / calls_per_point) % points_.size()];
  oldest.synchronize();
  record(oldest);
}

void CudaQueue::synchronize() {
  GPTBENCH_CUDA(cudaGetLastError());  // of launches, which report nothing themselves
  wait_watched(stream_);
}

cudaStream_t stream_of(Queue& queue) {
  return static_cast<CudaQueue&>(queue).stream();
}

const CudaLibraries& libraries_of(Queue& queue) {
  return static_cast<CudaQueue&>(queue).libraries();
}

// Here because kernels are linked behind the rest of cuda/: what they call has to be in an object
// that every program with a queue has.
bool library_attention(Queue& queue, DType type, const AttentionForward& call) {
  AttentionLibrary* const library = libraries_of(queue).attention;
  return library != nullptr && library->forward(queue, type, call);
}

bool library_attention(Queue& queue, DType type, const AttentionBackward& call) {
  AttentionLibrary* const library = libraries_of(queue).attention;
  return library != nullptr && library->backward(queue, type, call);
}

}  // namespace gptbench
