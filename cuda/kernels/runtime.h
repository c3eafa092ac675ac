// The CUDA language and how kernels are launched. With GPTBENCH_EMULATION the same sources are
// compiled by the host's compiler and run on its emulation of the execution model
// (test/emulation); nothing else in cuda/kernels and cuda/attention knows the difference.
//
//   launch(GPTBENCH_KERNEL(kernel<...>), grid, threads, shared_bytes, stream, arguments...)
//       starts `kernel` with that many threads a block, raising the kernel's limit of dynamic
//       shared memory where needed; throws Error where the launch is refused.
//   GPTBENCH_DYNAMIC_SHARED(type, name)    the block's dynamic shared memory, 16-byte aligned
//   GPTBENCH_VECTOR(type, p)               p as address of a `type`, a multiple of its size: others
//                                          are faults, on the emulation as well
//   GPTBENCH_UNROLL                        #pragma unroll
//   multiprocessors()                      of the current device
#pragma once

#if defined(GPTBENCH_EMULATION)
#include "emulation/cuda_emulation.h"
#else
#include <cuda_runtime.h>

#define GPTBENCH_UNROLL _Pragma("unroll")
#define GPTBENCH_VECTOR(type, p) reinterpret_cast<type*>(p)
#define GPTBENCH_DYNAMIC_SHARED(type, name)                        \
  extern __shared__ __align__(16) unsigned char gptbench_shared[]; \
  type* const name = reinterpret_cast<type*>(gptbench_shared)

namespace gptbench {

class Queue;
cudaStream_t stream_of(Queue& queue);  // cuda/cuda_queue.h

}  // namespace gptbench

namespace gptbench::cuda {

int multiprocessors();

// Lets `kernel` use `bytes` of dynamic shared memory, which may exceed the default of 48 KiB.
void allow_shared_memory(const char* name, const void* kernel, size_t bytes);
// Throws Error(Exit::peer) where the launch failed, Error(Exit::out_of_memory) where there was no
// memory to load the kernel into.
void check_launch(const char* name, cudaError_t status);

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, int threads,
            size_t shared_bytes, cudaStream_t stream, Arguments... arguments) {
  if (shared_bytes > 48 * 1024)
    allow_shared_memory(name, reinterpret_cast<const void*>(kernel), shared_bytes);
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check_launch(name, cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace gptbench::cuda
#endif

// Name and address of a __global__ function.
#define GPTBENCH_KERNEL(...) #__VA_ARGS__, __VA_ARGS__
