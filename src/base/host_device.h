// GPTBENCH_HOST_DEVICE marks the functions that CUDA kernels call too, so that there is one
// definition of each for host and device.
#pragma once

#if defined(__CUDACC__)
#define GPTBENCH_HOST_DEVICE __host__ __device__
#else
#define GPTBENCH_HOST_DEVICE
#endif
