// The libraries of a GPU, and those of their algorithms that are in use.
#pragma once

#include <memory>
#include <string>

#include "cuda/attention_library.h"
#include "cuda/backend.h"
#include "cuda/cuda_queue.h"
#include "cuda/gemm_cublaslt.h"
#include "device/device.h"

namespace gptbench {

class CudaAutotuning final : public Autotuning {
 public:
  // Opens the libraries for GPU `ordinal`, the current one. Throws Error(Exit::usage) where one
  // that the options ask for is missing.
  CudaAutotuning(int ordinal, const CudaOptions& options);

  CudaLibraries libraries() { return {&gemms_, attention_.get()}; }
  // "cuBLASLt 13.1.0, cuDNN 9.19.0".
  std::string description() const;

  void select(const Plan& plan) override;
  void reuse(const std::string& text) override;
  std::string selected() override;

 private:
  int ordinal_;
  CublasLtGemm gemms_;
  std::unique_ptr<AttentionLibrary> attention_;  // null: our own kernels alone
  std::string attention_obstacle_;               // why, where that was not requested
};

}  // namespace gptbench
