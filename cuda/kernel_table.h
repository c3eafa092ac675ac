// The kernel table of a GPU: the kernels of cuda/kernels.h, the matrix products of
// cuda/gemm_cublaslt.h and the attention of cuda/attention_library.h where that is chosen.
#pragma once

#include <string>
#include <vector>

#include "cuda/attention_library.h"
#include "cuda/gemm_cublaslt.h"
#include "device/kernels.h"

namespace gptbench {

// `gemms` serves the linear_* entries of all tables from now on; null: none is to be called.
void use_gemms(CublasLtGemm* gemms);
// `library` is asked first for attention from now on; null: our own kernels alone.
void use_attention(AttentionLibrary* library);
const KernelTable& cuda_kernel_table(ComputeType compute);
// Names of entries that are null in `table`.
std::vector<std::string> missing_kernels(const KernelTable& table);

}  // namespace gptbench
