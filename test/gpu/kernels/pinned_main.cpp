// Runs the tests of a program where everything that they allocate, and their stack, is memory that
// host and GPU both reach: so tests that were written for the host's kernels, with vectors and
// local variables as arguments, run on the GPU as they are.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

namespace {

constexpr size_t pool_bytes = size_t{2} << 30, stack_bytes = size_t{64} << 20;
constexpr size_t alignment = 64;

// Bytes from the pool; released pieces are kept by size.
class Pool {
 public:
  void open(char* memory, size_t bytes) {
    next_ = begin_ = memory;
    end_ = memory + bytes;
  }
  bool holds(const void* p) const { return p >= begin_ && p < end_; }

  void* take(size_t bytes) {
    const size_t size = (bytes + 2 * alignment - 1) / alignment * alignment;
    const std::lock_guard<std::mutex> lock(mutex_);
    char* piece = nullptr;
    const size_t level = level_of(size);
    if (free_[level] != nullptr) {
      piece = free_[level];
      free_[level] = *reinterpret_cast<char**>(piece + alignment);
    } else {
      const size_t piece_bytes = size_t{1} << level;
      if (begin_ == nullptr || static_cast<size_t>(end_ - next_) < piece_bytes) return nullptr;
      piece = next_;
      next_ += piece_bytes;
    }
    *reinterpret_cast<size_t*>(piece) = level;
    return piece + alignment;
  }
  void give_back(void* p) {
    const std::lock_guard<std::mutex> lock(mutex_);
    char* const piece = static_cast<char*>(p) - alignment;
    const size_t level = *reinterpret_cast<size_t*>(piece);
    *static_cast<char**>(p) = free_[level];
    free_[level] = piece;
  }

 private:
  // The power of two that holds `bytes`.
  static size_t level_of(size_t bytes) {
    size_t level = 7;
    while ((size_t{1} << level) < bytes) ++level;
    return level;
  }

  char *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
  char* free_[64] = {};
  std::mutex mutex_;
};

Pool pool;

void* run(void* status) {
  *static_cast<int*>(status) = RUN_ALL_TESTS();
  return nullptr;
}

}  // namespace

void* operator new(size_t bytes) {
  void* memory = pool.take(bytes);
  if (memory == nullptr) memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* p) noexcept {
  if (pool.holds(p))
    pool.give_back(p);
  else
    std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  operator delete(p);
}

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU here (%s)\n", cudaGetErrorString(found));
    return 77;
  }
  void* memory = nullptr;
  const cudaError_t pinned = cudaHostAlloc(&memory, pool_bytes + stack_bytes, cudaHostAllocMapped);
  if (pinned != cudaSuccess) {
    std::printf("memory for host and GPU: %s\n", cudaGetErrorString(pinned));
    return 1;
  }
  pool.open(static_cast<char*>(memory) + stack_bytes, pool_bytes);

  pthread_attr_t attributes;
  pthread_t thread;
  int status = 1;
  if (pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstack(&attributes, memory, stack_bytes) != 0 ||
      pthread_create(&thread, &attributes, run, &status) != 0) {
    std::printf("a thread whose stack host and GPU reach cannot be started\n");
    return 1;
  }
  pthread_join(thread, nullptr);
  // What static objects release later must not come from memory that CUDA has taken back by then.
  std::fflush(stdout);
  std::_Exit(status);
}
