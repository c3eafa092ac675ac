// Products of factors of 2 bytes by way of f32: blocks of the factors are converted and multiplied
// in f32, C is rounded at the end. For f16, and for bf16 on processors on which the GEMM library
// lacks it or is slow at it.
#pragma once

#include "device/gemm_onednn.h"

namespace gptbench {

// Runs `gemm` (factors of bf16 or f16) on `threads` threads. Blocks are of 1024 x 1024 x 512 where
// `workspace` holds them (8 MiB), else of 256 x 256 x 512 (1.25 MiB).
void run_converted(const Gemm& gemm, const Workspace& workspace, int threads);

}  // namespace gptbench
