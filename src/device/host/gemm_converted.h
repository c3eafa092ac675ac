// GEMMs of bf16 or f16 factors in f32: blocks of the factors are converted and multiplied in f32, C
// is rounded at the end. For f16, and for bf16 on processors where the GEMM library lacks it or is
// slow at it.
#pragma once

#include "device/host/gemm_onednn.h"

namespace gptbench {

// m or n, and k, of a block: the smaller m and n where `workspace` has no 8 MiB.
constexpr int64_t gemm_block_mn = 1024, gemm_small_block_mn = 256, gemm_block_k = 512;

// Runs `gemm` (factors of bf16 or f16) on `threads` threads. `workspace`: 8 MiB, or at least 1.25
// MiB.
void run_converted(const Gemm& gemm, const Workspace& workspace, int threads);

}  // namespace gptbench
