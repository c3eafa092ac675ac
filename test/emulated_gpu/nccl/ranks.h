// Ranks of a test as processes that it forks, each with an emulated GPU of its own: they may die
// without the test.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

namespace gptbench::emulation {

// How a rank's process ended: its exit status, 128 + the signal where one killed it.
struct Ended {
  int status = 0;
  std::string said;  // on standard error
};

// Runs `body` on each rank; a failed expectation makes the status 1.
std::vector<Ended> run_ranks(int ranks, const std::function<void(int rank)>& body);
void expect_all_pass(const std::vector<Ended>& ranks);

// One of a rank's arrays on its GPU.
template <class T>
class GpuArray {
 public:
  explicit GpuArray(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cudaMalloc(&gpu_, bytes() + 1), cudaSuccess);
    EXPECT_EQ(cudaHostAlloc(&host_, bytes() + 1, cudaHostAllocDefault), cudaSuccess);
    set(values);
  }
  ~GpuArray() {
    cudaFree(gpu_);
    cudaFreeHost(host_);
  }
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;

  T* data() const { return static_cast<T*>(gpu_); }
  // Both wait for all of the GPU.
  void set(const std::vector<T>& values) {
    cudaDeviceSynchronize();
    std::copy(values.begin(), values.end(), static_cast<T*>(host_));
    if (count_ > 0) cudaMemcpyAsync(gpu_, host_, bytes(), cudaMemcpyHostToDevice, nullptr);
    cudaDeviceSynchronize();
  }
  std::vector<T> get() const {
    cudaDeviceSynchronize();
    if (count_ > 0) cudaMemcpyAsync(host_, gpu_, bytes(), cudaMemcpyDeviceToHost, nullptr);
    cudaDeviceSynchronize();
    const T* const values = static_cast<const T*>(host_);
    return std::vector<T>(values, values + count_);
  }

 private:
  size_t bytes() const { return count_ * sizeof(T); }

  size_t count_;
  void* gpu_ = nullptr;
  void* host_ = nullptr;
};

class Stream {
 public:
  Stream() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Joins without blocking; settle() waits.
ncclComm_t joining(const ncclUniqueId& id, int ranks, int rank);
// Asks until the communicator is no longer in progress, and says what it then is.
ncclResult_t settle(ncclComm_t comm);
// A communicator that is joined.
ncclComm_t joined(const ncclUniqueId& id, int ranks, int rank);
void leave(ncclComm_t comm);
ncclUniqueId new_id();

}  // namespace gptbench::emulation
