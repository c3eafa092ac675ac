#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/units.h"
#include "cuda/cuda_queue.h"
#include "gpu_test.h"

namespace gptbench::test {

TEST(CudaDevice, MemoryIsAlignedAndZero) {
  const std::unique_ptr<Queue> queue = gpu().make_queue("test");
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, 5 * MiB + 3}) {
    void* const memory = gpu().allocate(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
    std::vector<char> read(static_cast<size_t>(bytes), 1);
    gpu().download(*queue, read.data(), memory, bytes);
    for (const char byte : read) ASSERT_EQ(byte, 0);
    gpu().release(memory, bytes);
  }
}

TEST(CudaDevice, MoreMemoryThanThereIsGivesNullAndIsForgotten) {
  EXPECT_EQ(gpu().allocate(int64_t{1} << 50), nullptr);
  const std::unique_ptr<Queue> queue = gpu().make_queue("test");
  const OnDevice<float> after(*queue, std::vector<float>(16, 1.0f));
  EXPECT_EQ(after.read(), std::vector<float>(16, 1.0f));
  const MemoryOffer offer = gpu().memory_offer();
  EXPECT_GT(offer.available_bytes, 0);
  EXPECT_LE(offer.available_bytes, offer.total_bytes);
}

// Sizes around those of the pieces that copies go in.
TEST(CudaDevice, CopiesEverySize) {
  const std::unique_ptr<Queue> queue = gpu().make_queue("test");
  for (const int64_t bytes : {int64_t{1}, MiB - 1, MiB, MiB + 1, 17 * MiB + 5}) {
    std::vector<char> values(static_cast<size_t>(bytes));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<char>(i * 7 + i / 1000);
    const OnDevice<char> array(*queue, values);
    EXPECT_EQ(array.read(), values);
    void* const host = gpu().allocate_host(bytes);
    ASSERT_NE(host, nullptr);
    gpu().copy(*queue, host, array.data(), bytes);
    gpu().fill_zero(*queue, array.data(), bytes);
    queue->synchronize();
    EXPECT_EQ(std::memcmp(host, values.data(), values.size()), 0);
    gpu().copy(*queue, array.data(), host, bytes);
    EXPECT_EQ(array.read(), values);
    gpu().release_host(host, bytes);
  }
}

// A queue waits for what another has enqueued, not for what it enqueues later.
TEST(CudaDevice, EventsOrderQueues) {
  const std::unique_ptr<Queue> first = gpu().make_queue("first"),
                               second = gpu().make_queue("second");
  const std::unique_ptr<Event> event = gpu().make_event();
  second->wait(*event);  // never recorded: completed
  constexpr int64_t bytes = 256 * MiB;
  char* const memory = static_cast<char*>(gpu().allocate(2 * bytes));
  ASSERT_NE(memory, nullptr);
  for (int repeat = 0; repeat < 4; ++repeat) {
    const std::vector<char> mark(1, static_cast<char>(repeat + 1));
    gpu().fill_zero(*first, memory, bytes);
    gpu().upload(*first, memory + bytes - 1, mark.data(), 1);
    first->record(*event);
    second->wait(*event);
    gpu().copy(*second, memory + bytes, memory, bytes);
    char seen = 0;
    gpu().download(*second, &seen, memory + 2 * bytes - 1, 1);
    EXPECT_EQ(seen, mark[0]);
  }
  gpu().release(memory, 2 * bytes);
}

// The queue of the host's kernels blocks for what was copied out; what waits for it starts at once.
TEST(CudaDevice, HostKernelsAreOrderedAgainstCopies) {
  const std::unique_ptr<Queue> copies = gpu().make_queue("copy"), host = gpu().make_host_queue();
  const std::unique_ptr<Event> event = gpu().make_event();
  host->wait(*event);  // never recorded: completed
  constexpr int64_t bytes = 64 * MiB;
  char* const memory = static_cast<char*>(gpu().allocate(bytes));
  char* const on_host = static_cast<char*>(gpu().allocate_host(bytes));
  ASSERT_TRUE(memory != nullptr && on_host != nullptr);
  for (int repeat = 0; repeat < 4; ++repeat) {
    const std::vector<char> mark(1, static_cast<char>(10 * repeat + 1));
    gpu().upload(*copies, memory + bytes - 1, mark.data(), 1);
    gpu().copy(*copies, on_host, memory, bytes);
    copies->record(*event);
    host->wait(*event);
    EXPECT_EQ(on_host[bytes - 1]++, mark[0]);
    host->record(*event);
    copies->wait(*event);
    gpu().copy(*copies, memory, on_host, bytes);
    char seen = 0;
    gpu().download(*copies, &seen, memory + bytes - 1, 1);
    EXPECT_EQ(seen, mark[0] + 1);
  }
  gpu().release_host(on_host, bytes);
  gpu().release(memory, bytes);
}

// A function of the host sleeps on the queue between two marks. Their time is at least that of the
// sleep, and at most what the host waits for both marks, however busy the machine is; the clocks of
// GPU and host differ by far less than 1 %.
TEST(CudaDevice, StopwatchTellsSeconds) {
  static constexpr std::chrono::milliseconds asleep{20};
  const std::unique_ptr<Queue> queue = gpu().make_queue("test");
  const std::unique_ptr<Stopwatch> stopwatch = gpu().make_stopwatch();
  const cudaHostFn_t sleep = [](void*) { std::this_thread::sleep_for(asleep); };
  const double begin_s = now_s();
  stopwatch->mark(*queue, 1);
  ASSERT_EQ(cudaLaunchHostFunc(stream_of(*queue), sleep, nullptr), cudaSuccess);
  stopwatch->mark(*queue, -1);
  queue->synchronize();
  const double host_s = now_s() - begin_s;
  std::vector<double> seconds(2);
  stopwatch->collect(seconds);
  EXPECT_EQ(seconds[0], 0.0);
  EXPECT_GE(seconds[1], 0.99 * std::chrono::duration<double>(asleep).count());
  EXPECT_LE(seconds[1], 1.01 * host_s);
}

}  // namespace gptbench::test
