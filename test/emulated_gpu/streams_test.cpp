// The emulated runtime itself: that it shows what a GPU would leave to chance.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "emulated_gpu/gpu.h"

namespace gptbench::emulation {
namespace {

void succeed(cudaError_t status) {
  ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status);
}

struct Stream {
  cudaStream_t id = nullptr;
  Stream() { succeed(cudaStreamCreateWithFlags(&id, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(id); }
};
struct Event {
  cudaEvent_t id = nullptr;
  Event() { succeed(cudaEventCreate(&id)); }
  ~Event() { cudaEventDestroy(id); }
};

struct Numbers {
  static constexpr size_t bytes = 4 * sizeof(int);
  int* host = nullptr;
  int* device = nullptr;
  Numbers() {
    succeed(cudaHostAlloc(reinterpret_cast<void**>(&host), bytes, cudaHostAllocDefault));
    succeed(cudaMalloc(reinterpret_cast<void**>(&device), bytes));
    for (int i = 0; i < 4; ++i) host[i] = i + 1;
  }
  ~Numbers() {
    cudaFree(device);
    cudaFreeHost(host);
  }
  void upload(cudaStream_t stream) const {
    succeed(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
  }
  void download(cudaStream_t stream, const Numbers& from) const {
    succeed(cudaMemcpyAsync(host, from.device, bytes, cudaMemcpyDeviceToHost, stream));
  }
};

TEST(Streams, WorkThatNothingOrdersIsSeenOutOfOrder) {
  const Stream one, other;
  const Numbers sent, seen;
  sent.upload(one.id);
  seen.download(other.id, sent);
  succeed(cudaStreamSynchronize(other.id));
  EXPECT_NE(seen.host[0], 1) << "the upload ran although nobody waits for it";
  succeed(cudaStreamSynchronize(one.id));
}

TEST(Streams, AnEventOrders) {
  const Stream one, other;
  const Event uploaded;
  const Numbers sent, seen;
  sent.upload(one.id);
  succeed(cudaEventRecord(uploaded.id, one.id));
  succeed(cudaStreamWaitEvent(other.id, uploaded.id, 0));
  seen.download(other.id, sent);
  succeed(cudaStreamSynchronize(other.id));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(seen.host[i], i + 1);
}

// Ends the process, and says how much ran before a message came and after.
void wait_in_a_connection() {
  const Stream sender, waiting, other;
  const Event sent;
  std::atomic<bool> peer{false};
  std::atomic<int> ran{0};
  const auto count = [&] {
    ++ran;
    return true;
  };
  enqueue(sender.id, "a message", [&] { return peer.load(); });
  succeed(cudaEventRecord(sent.id, sender.id));
  succeed(cudaStreamWaitEvent(waiting.id, sent.id, 0));
  enqueue(waiting.id, "what needs the message", count);
  enqueue(other.id, "what needs nothing", count);
  for (int i = 0; i < 20; ++i) cudaStreamQuery(other.id);
  const int before = ran;
  peer = true;
  succeed(cudaStreamSynchronize(other.id));
  misuse("%d before the message, %d after", before, ran.load());
}

// In processes of their own, since the number of connections is asked for once.
TEST(ConnectionsDeathTest, AreQueuesThatStreamsMayShare) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(wait_in_a_connection(), "1 before the message, 1 after");
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  EXPECT_DEATH(wait_in_a_connection(), "0 before the message, 2 after");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

// Ends the process, and says how much ran before code was loaded a first and a second time.
void load_twice() {
  const Stream stream;
  std::atomic<int> ran{0};
  int before[2];
  for (int& seen : before) {
    enqueue(stream.id, "a kernel", [&] {
      ++ran;
      return true;
    });
    load_code("another");
    seen = ran;
  }
  misuse("%d and %d", before[0], before[1]);
}

TEST(LoadingDeathTest, WaitsOnceOnRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(load_twice(), "0 and 0");
  setenv("GPTBENCH_EMULATED_LOADING_WAITS", "1", 1);
  EXPECT_DEATH(load_twice(), "1 and 1");
  unsetenv("GPTBENCH_EMULATED_LOADING_WAITS");
}

// A wait is for what the event stood for when the wait was enqueued.
TEST(Streams, ALaterRecordDoesNotCount) {
  const Stream one, other;
  const Event event;
  const Numbers sent, seen;
  succeed(cudaEventRecord(event.id, one.id));
  succeed(cudaStreamWaitEvent(other.id, event.id, 0));
  sent.upload(one.id);
  succeed(cudaEventRecord(event.id, one.id));
  seen.download(other.id, sent);
  succeed(cudaStreamSynchronize(other.id));
  EXPECT_NE(seen.host[0], 1);
  succeed(cudaEventSynchronize(event.id));
}

TEST(Streams, RunWithoutBeingAsked) {
  const Stream stream;
  std::atomic<bool> ran{false};
  enqueue(stream.id, "a flag", [&] { return ran = true; });
  while (!ran) {
  }
  EXPECT_EQ(cudaStreamQuery(stream.id), cudaSuccess);
}

TEST(Streams, WorkThatWaitsForAPeerKeepsNoOtherStreamWaiting) {
  const Stream waiting, other;
  std::atomic<bool> arrived{false};
  enqueue(waiting.id, "a message", [&] { return arrived.load(); });
  enqueue(other.id, "its peer", [&] { return arrived = true; });
  succeed(cudaStreamSynchronize(waiting.id));
  EXPECT_TRUE(arrived);
}

TEST(Streams, ErrorsAreAnsweredOnceMore) {
  const Stream stream;
  std::atomic<bool> go{false};
  enqueue(stream.id, "a wait", [&] { return go.load(); });
  EXPECT_EQ(cudaStreamQuery(stream.id), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  go = true;
  succeed(cudaStreamSynchronize(stream.id));
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, size_t{1} << 50), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

// ---- graphs
// --------------------------------------------------------------------------------------

TEST(Graphs, ReplayWhatWasCapturedOnBothStreams) {
  const Stream one, other;
  const Event forked, joined, begin, end;
  const Numbers sent, seen;
  succeed(cudaStreamBeginCapture(one.id, cudaStreamCaptureModeRelaxed));
  succeed(cudaEventRecordWithFlags(begin.id, one.id, cudaEventRecordExternal));
  sent.upload(one.id);
  succeed(cudaEventRecord(forked.id, one.id));
  succeed(cudaStreamWaitEvent(other.id, forked.id, 0));
  seen.download(other.id, sent);
  succeed(cudaEventRecord(joined.id, other.id));
  succeed(cudaStreamWaitEvent(one.id, joined.id, 0));
  succeed(cudaEventRecordWithFlags(end.id, one.id, cudaEventRecordExternal));
  cudaGraph_t graph = nullptr;
  succeed(cudaStreamEndCapture(one.id, &graph));
  cudaGraphExec_t executable = nullptr;
  succeed(cudaGraphInstantiate(&executable, graph, 0));
  succeed(cudaGraphDestroy(graph));
  EXPECT_EQ(seen.host[0], 1) << "both hold 1 to 4 at first";
  for (int replay = 0; replay < 3; ++replay) {
    sent.host[0] = 10 + replay;
    succeed(cudaGraphLaunch(executable, one.id));
    succeed(cudaStreamSynchronize(one.id));
    EXPECT_EQ(seen.host[0], 10 + replay);
    float ms = -1.0f;
    succeed(cudaEventElapsedTime(&ms, begin.id, end.id));
    EXPECT_GE(ms, 0.0f);
  }
  succeed(cudaGraphExecDestroy(executable));
}

TEST(Graphs, AStreamThatIsNotJoinedIsRefused) {
  const Stream one, other;
  const Event forked;
  const Numbers sent;
  succeed(cudaStreamBeginCapture(one.id, cudaStreamCaptureModeRelaxed));
  succeed(cudaEventRecord(forked.id, one.id));
  succeed(cudaStreamWaitEvent(other.id, forked.id, 0));
  sent.upload(other.id);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(one.id, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
}

TEST(Graphs, NobodyWaitsForACapturedStream) {
  const Stream stream;
  const Event event;
  succeed(cudaStreamBeginCapture(stream.id, cudaStreamCaptureModeRelaxed));
  succeed(cudaEventRecord(event.id, stream.id));
  EXPECT_EQ(cudaEventQuery(event.id), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamSynchronize(stream.id), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream.id, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST(Graphs, AnEventFromOutsideBreaksTheCapture) {
  const Stream one, other;
  const Event before;
  succeed(cudaEventRecord(before.id, other.id));
  succeed(cudaStreamBeginCapture(one.id, cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(cudaStreamWaitEvent(one.id, before.id, 0), cudaErrorStreamCaptureIsolation);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(one.id, &graph), cudaErrorStreamCaptureInvalidated);
}

// ---- misuse
// --------------------------------------------------------------------------------------

TEST(MisuseDeathTest, OfMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Stream stream;
  const Numbers numbers;
  std::vector<int> pageable(4);
  EXPECT_DEATH(std::memset(numbers.device, 0, 4), "device memory by the host");
  EXPECT_DEATH(
      {
        enqueue(stream.id, "a kernel", [&] {
          numbers.device[64] = 1;
          return true;
        });
        cudaStreamSynchronize(stream.id);
      },
      "behind an allocation");
  EXPECT_DEATH(
      cudaMemcpyAsync(numbers.device, pageable.data(), 16, cudaMemcpyHostToDevice, stream.id),
      "page-locked");
  EXPECT_DEATH(cudaMemcpyAsync(numbers.device, numbers.host, 17, cudaMemcpyHostToDevice, stream.id),
               "not 17 bytes of device memory");
  EXPECT_DEATH(cudaFree(numbers.device + 1), "nothing was allocated there");
}

TEST(MisuseDeathTest, OfWhatWasDestroyed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  cudaStream_t stream = nullptr;
  succeed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  succeed(cudaStreamDestroy(stream));
  EXPECT_DEATH(cudaStreamSynchronize(stream), "destroyed");
}

}  // namespace
}  // namespace gptbench::emulation
