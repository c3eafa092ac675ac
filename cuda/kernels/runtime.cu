#include "cuda/kernels/runtime.h"

#include <string>

#include "base/error.h"

namespace gptbench::cuda {
namespace {

void check(cudaError_t status, const char* kernel, const char* what) {
  if (status == cudaSuccess) return;
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // an outcome, which no later call is to report
    throw Error(Exit::out_of_memory, std::string("no memory of the GPU for CUDA kernel ") + kernel);
  }
  throw Error(Exit::peer, std::string("CUDA kernel ") + kernel + ": " + what + ": " +
                              cudaGetErrorString(status));
}

}  // namespace

int multiprocessors() {
  static const int count = [] {
    int device = 0, value = 0;
    check(cudaGetDevice(&device), "(any)", "cudaGetDevice");
    check(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device), "(any)",
          "cudaDevAttrMultiProcessorCount");
    return value;
  }();
  return count;
}

void allow_shared_memory(const char* name, const void* kernel, size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        name, "its shared memory");
}

void check_launch(const char* name, cudaError_t status) {
  check(status, name, "launch");
}

}  // namespace gptbench::cuda
