// f32 GEMMs through the BLAS that was chosen when gptbench was built (CMake: GPTBENCH_BLAS), for
// processors on which oneDNN's own are slow.
#pragma once

#include "device/host/gemm_onednn.h"

namespace gptbench {

// "OpenBLAS"; "" where none was chosen.
std::string blas_name();

// C[m,n] = A[m,k] B[k,n] + beta C of f32, on the threads of set_gemm_threads(). The bias is not
// read. False, and nothing is done, without a BLAS and where a size exceeds its integers.
bool run_blas(const Gemm& gemm, float beta);

}  // namespace gptbench
