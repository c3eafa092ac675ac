#include "cuda/cuda_queue.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_recording.h"

namespace gptbench {
namespace {

std::vector<StreamWatch*>& stream_watches() {
  static std::vector<StreamWatch*> watches;
  return watches;
}

}  // namespace

StreamWatch::StreamWatch() {
  stream_watches().push_back(this);
}

StreamWatch::~StreamWatch() {
  std::vector<StreamWatch*>& watches = stream_watches();
  watches.erase(std::find(watches.begin(), watches.end(), this));
}

void give_up_watched_streams() {
  for (StreamWatch* watch : stream_watches()) watch->give_up();
}

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

void CudaEvent::wait_on_host() const {
  if (recorded_ == Recorded::stream) GPTBENCH_CUDA(cudaEventSynchronize(event_));
  if (recorded_ == Recorded::host) host_queue_->wait_until(host_ticket_);
}

CudaQueue::CudaQueue() {
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

void CudaQueue::synchronize() {
  GPTBENCH_CUDA(cudaGetLastError());  // of launches, which report nothing themselves
  if (stream_watches().empty()) {
    GPTBENCH_CUDA(cudaStreamSynchronize(stream_));
    return;
  }
  or_give_up([&] { wait_watched(); });
}

// A message whose peer is lost never ends: the library is asked in between.
void CudaQueue::wait_watched() const {
  constexpr double interval_s = 0.2;
  const double start_s = now_s();
  double asked_s = start_s;
  for (;;) {
    const cudaError_t status = cudaStreamQuery(stream_);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check_cuda(status, "cudaStreamQuery");
    cudaGetLastError();  // not being ready counts as one
    if (now_s() - asked_s > interval_s) {
      asked_s = now_s();
      for (const StreamWatch* watch : stream_watches()) watch->check();
      if (asked_s - start_s > peer_timeout_s)
        throw Error(Exit::peer, "a stream with messages has not come to its end for " +
                                    std::to_string(static_cast<int>(peer_timeout_s)) + " s");
    }
    sched_yield();
  }
}

}  // namespace gptbench
