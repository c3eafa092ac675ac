// Matrix products of fp8 factors on a host: decoded to bfloat16, which holds every fp8 number
// divided by a power of two, block by block, and multiplied by oneDNN with sums in f32. What a GPU
// computes but for the order of its sums.
#pragma once

#include "device/host/gemm_onednn.h"

namespace gptbench {

// m or n, and k, of a block.
constexpr int64_t fp8_gemm_block_mn = 512, fp8_gemm_block_k = 1024;
// C and bias are bf16 or f32. Takes 4 MiB of the workspace for blocks and leaves the rest to the
// library.
void run_gemm_fp8(const Gemm& gemm, const Workspace& workspace);

}  // namespace gptbench
