// Failures of CUDA calls.
#pragma once

#include <cuda_runtime_api.h>

#include "base/error.h"

namespace gptbench {

// Throws Error(Exit::peer), naming call and reason: a device that fails in the middle of a run is
// to the other ranks what a lost peer is. Memory that cannot be had (contexts and kernels that are
// loaded on first use take some) is an outcome, Error(Exit::out_of_memory), and is forgotten by the
// runtime, which else would report it of a later call.
void check_cuda(cudaError_t status, const char* call);

}  // namespace gptbench

#define GPTBENCH_CUDA(call) ::gptbench::check_cuda((call), #call)
