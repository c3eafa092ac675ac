// A product as asked for, after the library's documented rules were applied (cuBLAS 13.1,
// cublasLtMatmul() and cublasLtMatmulDescAttributes_t, for compute capability 9.0). What gptbench
// has no use for - batches, orders other than column-major, pointers to alpha and beta on the
// device, results in fp8, ReLU - is answered as not supported.
#pragma once

#include "emulated_gpu/cublaslt/descriptors.h"

namespace gptbench::emulation {

// D[m,n] = op(A)[m,k] op(B)[k,n] + beta C, column-major, then the epilogue.
struct Problem {
  cudaDataType_t a, b, c, d, bias, aux;
  bool transpose_a, transpose_b, tf32, fast_accumulation;
  int64_t m, n, k, lda, ldb, ldc, ldd, ldaux;
  cublasLtEpilogue_t epilogue;

  bool fp8() const { return is_fp8(a); }
  bool reads_bias() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  // Assigns sums of op(A), op(B) or of its own results: to rows of D, columns or rows.
  bool writes_bias() const {
    return epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB ||
           epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
  }
  int64_t bias_length() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB ? n : m; }
  bool has_aux() const { return (epilogue & 128) != 0; }
  // Aux is GELU's argument: written by a forward product, read by a backward one.
  bool writes_aux() const { return has_aux() && (epilogue & CUBLASLT_EPILOGUE_GELU) != 0; }
  bool has_gelu() const { return (epilogue & CUBLASLT_EPILOGUE_GELU) != 0; }

  static bool is_fp8(cudaDataType_t type) {
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
  }
};

int64_t bytes_of(cudaDataType_t type);

// CUBLAS_STATUS_SUCCESS, or why there is no such product. Layouts of C and D that are null in the
// call are the other's; the others are not null.
cublasStatus_t describe(const Operation& operation, const Layout& a, const Layout& b,
                        const Layout& c, const Layout& d, Problem& problem);

}  // namespace gptbench::emulation
