#include "device/host/gemm_blas.h"

#ifdef GPTBENCH_BLAS

#include <algorithm>
#include <limits>

// The Fortran interface, which every BLAS has: column-major, all arguments by address.
extern "C" void sgemm_(const char* a_transposed, const char* b_transposed, const int* m,
                       const int* n, const int* k, const float* alpha, const float* a,
                       const int* lda, const float* b, const int* ldb, const float* beta, float* c,
                       const int* ldc);

namespace gptbench {

std::string blas_name() {
  return GPTBENCH_BLAS;
}

// Read by columns, row-major C = A B is C' = B' A'.
bool run_blas(const Gemm& gemm, float beta) {
  const int64_t sizes[] = {gemm.m, gemm.n, gemm.k, gemm.a.ld, gemm.b.ld, gemm.ldc};
  if (*std::max_element(std::begin(sizes), std::end(sizes)) > std::numeric_limits<int>::max())
    return false;
  const auto size = [](int64_t value) { return static_cast<int>(value); };
  const int m = size(gemm.m), n = size(gemm.n), k = size(gemm.k);
  const int lda = size(gemm.a.ld), ldb = size(gemm.b.ld), ldc = size(gemm.ldc);
  const float one = 1.0f;
  sgemm_(gemm.b.transposed ? "T" : "N", gemm.a.transposed ? "T" : "N", &n, &m, &k, &one,
         static_cast<const float*>(gemm.b.data), &ldb, static_cast<const float*>(gemm.a.data), &lda,
         &beta, static_cast<float*>(gemm.c), &ldc);
  return true;
}

}  // namespace gptbench

#else

namespace gptbench {

std::string blas_name() {
  return "";
}

bool run_blas(const Gemm&, float) {
  return false;
}

}  // namespace gptbench

#endif
