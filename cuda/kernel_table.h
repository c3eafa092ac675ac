// The kernel table of a GPU: the kernels of cuda/kernels.h and the matrix products of
// cuda/gemm_cublaslt.h.
#pragma once

#include <string>
#include <vector>

#include "cuda/gemm_cublaslt.h"
#include "device/kernels.h"

namespace gptbench {

// `gemms` serves the linear_* entries of all tables from now on; null: none is to be called.
void use_gemms(CublasLtGemm* gemms);
const KernelTable& cuda_kernel_table(ComputeType compute);
// Names of entries that are null in `table`.
std::vector<std::string> missing_kernels(const KernelTable& table);

}  // namespace gptbench
