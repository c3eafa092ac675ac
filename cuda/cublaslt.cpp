#include "cuda/cublaslt.h"

#include "base/error.h"

namespace gptbench {

CublasLt::CublasLt() : library("device = 'cuda'", {"libcublasLt.so.13", "libcublasLt.so.12"}) {}

// 130100: 13.1.0; 120805: 12.8.5.
std::string CublasLt::description() const {
  const size_t version = cublasLtGetVersion();
  return "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
         "." + std::to_string(version % 100);
}

void CublasLt::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const Exit code = status == CUBLAS_STATUS_ALLOC_FAILED ? Exit::out_of_memory : Exit::peer;
  throw Error(code, std::string(call) + ": " + cublasLtGetStatusString(status));
}

}  // namespace gptbench
