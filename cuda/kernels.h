// Kernels of the table (device/kernels.h) written in CUDA. Each enqueues on stream_of(queue)
// (cuda/cuda_queue.h) and returns; none synchronises or allocates, a launch that CUDA refuses
// throws Error(Exit::peer), or Error(Exit::out_of_memory) where there is no room to load it. The
// linear_* entries are null: matrix products are those of cuda/gemm_cublaslt.h.
#pragma once

#include "device/kernels.h"

namespace gptbench {

// A null entry other than linear_* is a kernel that is not written yet; make_cuda_device refuses to
// run without it. fp64 is not a compute type of this device.
const KernelTable& cuda_kernels(ComputeType compute);

}  // namespace gptbench
