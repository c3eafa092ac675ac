// A product as the library has it: descriptors, made once.
#pragma once

#include "cuda/gemm_cublaslt.h"

namespace gptbench {

struct CublasLtGemm::Planned {
  explicit Planned(const CublasLt& library) : lt(library) {}
  ~Planned() {
    if (d != nullptr) lt.cublasLtMatrixLayoutDestroy(d);
    if (b != nullptr) lt.cublasLtMatrixLayoutDestroy(b);
    if (a != nullptr) lt.cublasLtMatrixLayoutDestroy(a);
    if (operation != nullptr) lt.cublasLtMatmulDescDestroy(operation);
  }
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

  const CublasLt& lt;
  GemmDescription gemm;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  GemmSelection selection;
};

}  // namespace gptbench
