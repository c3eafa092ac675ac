// Kernels of the whole program: work of the stream of the queue that they are given.
#include <cstdint>
#include <string>

#include "cuda/cuda_queue.h"
#include "emulated_gpu/gpu.h"
#include "emulation/launch.h"

namespace gptbench::emulation {

CUstream_st* stream_of(Queue& queue) {
  return static_cast<CudaQueue&>(queue).stream();
}

void load_kernel(const char* name, const void* kernel) {
  load_code(name + std::to_string(reinterpret_cast<uintptr_t>(kernel)));
}

void submit(CUstream_st* stream, const char* name, std::function<void()> grid) {
  enqueue(stream, name, [grid = std::move(grid)] {
    grid();
    return true;
  });
}

}  // namespace gptbench::emulation
