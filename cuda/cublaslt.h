// The functions of cuBLASLt that gptbench calls, from the library that is opened at run time.
#pragma once

#include <cublasLt.h>

#include <string>

#include "cuda/dynamic_library.h"

namespace gptbench {

struct CublasLt {
  // Throws Error(Exit::usage) where the library is missing.
  CublasLt();

  DynamicLibrary library;
  GPTBENCH_FUNCTION(library, cublasLtCreate);
  GPTBENCH_FUNCTION(library, cublasLtDestroy);
  GPTBENCH_FUNCTION(library, cublasLtGetVersion);
  GPTBENCH_FUNCTION(library, cublasLtGetStatusString);
  GPTBENCH_FUNCTION(library, cublasLtMatmul);
  GPTBENCH_FUNCTION(library, cublasLtMatmulAlgoCheck);
  GPTBENCH_FUNCTION(library, cublasLtMatmulAlgoGetHeuristic);
  GPTBENCH_FUNCTION(library, cublasLtMatmulDescCreate);
  GPTBENCH_FUNCTION(library, cublasLtMatmulDescDestroy);
  GPTBENCH_FUNCTION(library, cublasLtMatmulDescSetAttribute);
  GPTBENCH_FUNCTION(library, cublasLtMatrixLayoutCreate);
  GPTBENCH_FUNCTION(library, cublasLtMatrixLayoutDestroy);
  GPTBENCH_FUNCTION(library, cublasLtMatmulPreferenceCreate);
  GPTBENCH_FUNCTION(library, cublasLtMatmulPreferenceDestroy);
  GPTBENCH_FUNCTION(library, cublasLtMatmulPreferenceSetAttribute);

  // "cuBLASLt 13.1.0".
  std::string description() const;
  // Throws Error(Exit::peer), as check_cuda does.
  void check(cublasStatus_t status, const char* call) const;
};

}  // namespace gptbench
