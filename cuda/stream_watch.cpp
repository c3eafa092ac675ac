#include "cuda/stream_watch.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "comm/pulse.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_recording.h"

namespace gptbench {
namespace {

std::vector<StreamWatch*>& stream_watches() {
  static std::vector<StreamWatch*> watches;
  return watches;
}

// Longest wait for communicators to abort, which takes well under a second.
constexpr auto patience = std::chrono::seconds(30);

// A message whose peer is lost never ends: the library is polled in between.
template <class Query>
void wait_until(const Query& query, const char* call) {
  constexpr double interval_s = 0.2;
  const Pulse::Waiting waiting;
  double polled_s = now_s();
  for (;;) {
    const cudaError_t status = query();
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check_cuda(status, call);
    cudaGetLastError();  // not being ready counts as one
    if (now_s() - polled_s > interval_s) {
      polled_s = now_s();
      for (const StreamWatch* watch : stream_watches()) watch->check();
    }
    sched_yield();
  }
}

}  // namespace

StreamWatch::StreamWatch() {
  stream_watches().push_back(this);
}

StreamWatch::~StreamWatch() {
  std::vector<StreamWatch*>& watches = stream_watches();
  watches.erase(std::find(watches.begin(), watches.end(), this));
}

// A library returns from aborting a communicator when its kernels have ended, which on their
// streams may stand behind those of another; and, NCCL since 2.26, when no graph holds them.
void give_up_watched_streams(const std::string& why) {
  if (stream_watches().empty()) return;
  drop_recordings();
  std::vector<std::function<void()>> endings;
  for (StreamWatch* watch : stream_watches())
    for (std::function<void()>& ending : watch->give_up(why)) endings.push_back(std::move(ending));
  end_together(endings, why);
}

void end_together(const std::vector<std::function<void()>>& endings, const std::string& why) {
  struct Left {
    std::mutex mutex;
    std::condition_variable changed;
    size_t count;
  };
  const auto left = std::make_shared<Left>();
  left->count = endings.size();
  for (const std::function<void()>& ending : endings) {
    std::thread([ending, left] {
      ending();
      const std::lock_guard<std::mutex> lock(left->mutex);
      --left->count;
      left->changed.notify_all();
    }).detach();
  }
  std::unique_lock<std::mutex> lock(left->mutex);
  const bool ended = left->changed.wait_for(lock, patience, [&] { return left->count == 0; });
  GPTBENCH_CHECK(ended, why + "; and what waits for peers on the GPU does not end");
}

void wait_watched(cudaStream_t stream) {
  if (stream_watches().empty()) {
    GPTBENCH_CUDA(cudaStreamSynchronize(stream));
    return;
  }
  or_give_up([&] { wait_until([&] { return cudaStreamQuery(stream); }, "cudaStreamQuery"); });
}

void wait_watched(cudaEvent_t event) {
  if (stream_watches().empty()) {
    GPTBENCH_CUDA(cudaEventSynchronize(event));
    return;
  }
  or_give_up([&] { wait_until([&] { return cudaEventQuery(event); }, "cudaEventQuery"); });
}

}  // namespace gptbench
