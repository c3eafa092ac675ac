// The kernel table of a GPU (device/kernels.h). Each kernel enqueues on stream_of(queue)
// (cuda/cuda_queue.h) and returns; none synchronises or allocates, a launch that CUDA refuses
// throws Error(Exit::peer), or Error(Exit::out_of_memory) where there is no room to load it. GEMMs
// and, where it is faster, attention are calls of the queue's libraries.
#pragma once

#include "device/kernels.h"

namespace gptbench {

// fp32, bf16 and fp16.
const KernelTable& cuda_kernels(ComputeType compute);

}  // namespace gptbench
