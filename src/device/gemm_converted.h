// Products of bf16 factors by way of f32: blocks of the factors are converted and multiplied in
// f32, C is rounded at the end. For processors on which the GEMM library has no bf16, or is slow at
// it.
#pragma once

#include "device/gemm_onednn.h"

namespace gptbench {

// Runs `gemm` (bf16 factors) on `threads` threads. Blocks are of 1024 x 1024 x 512 where
// `workspace` holds them (8 MiB), else of 256 x 256 x 512 (1.25 MiB).
void run_converted(const Gemm& gemm, const Workspace& workspace, int threads);

}  // namespace gptbench
