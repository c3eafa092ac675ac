// fp8 GEMMs on a host: factors are decoded block by block to bfloat16, which represents every fp8
// number times a power of two exactly, and multiplied by oneDNN with sums in f32. Results equal
// those of a GPU except for the order of sums.
#pragma once

#include "device/host/gemm_onednn.h"

namespace gptbench {

// m or n, and k, of a block.
constexpr int64_t fp8_gemm_block_mn = 512, fp8_gemm_block_k = 1024;
// C and bias are bf16 or f32. Takes 3 MiB of the workspace for blocks and leaves the rest to the
// library.
void run_gemm_fp8(const Gemm& gemm, const Workspace& workspace);

}  // namespace gptbench
