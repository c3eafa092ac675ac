// Sizes of the blocks in which host kernels do their work, for those who have to cross them: tests,
// and the reduced model of the verification. Those of GEMMs are in gemm_converted.h and gemm_fp8.h,
// those of attention in plan/workspace.h.
#pragma once

#include <cstdint>

namespace gptbench::host {

// Elements of a block in element-wise kernels: whole cache lines, small enough to share out.
constexpr int64_t block_elements = 4096;
// Sums over rows add blocks of this many in order, so that neither rounding nor order depends on
// the number of threads.
constexpr int64_t row_block = 64;
// Number of columns for which one thread holds partial sums at a time.
constexpr int64_t column_block = 128;
// Logits of a row whose exponentials are summed in float before the sum goes on in double.
constexpr int64_t loss_chunk = 1024;

}  // namespace gptbench::host
