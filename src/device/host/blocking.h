// Block sizes of host kernels, which tests and the reduced model of the verification must exceed.
// GEMMs have theirs in gemm_converted.h and gemm_fp8.h, attention in plan/workspace.h.
#pragma once

#include <cstdint>

namespace gptbench::host {

// Elements per block of element-wise kernels: whole cache lines, small enough to occupy all
// threads.
constexpr int64_t block_elements = 4096;
// Rows per block of sums over rows. Blocks are added in order, so that results do not depend on the
// number of threads.
constexpr int64_t row_block = 64;
// Number of columns for which one thread holds partial sums at a time.
constexpr int64_t column_block = 128;
// Logits whose exponentials are summed in float before the sum continues in double.
constexpr int64_t loss_chunk = 1024;

}  // namespace gptbench::host
