// Matrix products of linear layers through cuBLASLt: the linear_* entries of the kernel table.
// f32 (on request with factors rounded to tf32), bf16, f16 and fp8; sums in f32; gradients of
// weights are added up in f32 in place. A product is planned once; a call costs one look-up, no
// allocation.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/cublaslt.h"
#include "cuda/gemm_description.h"
#include "device/kernels.h"

namespace gptbench {

// Addresses of one call.
struct GemmArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;  // read by the epilogue `bias`, assigned by gradients of biases
  const void* aux = nullptr;   // assigned by `gelu` and `gelu_bias`, read by `gelu_gradient`
  Workspace workspace;
  // Scales of the fp8 factors, in device memory; null: 1.
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
  bool assign = false;  // D where its description says D +=
};

class CublasLtGemm {
 public:
  // For the current device. Throws Error(Exit::usage) where the library is missing.
  explicit CublasLtGemm(bool tf32);
  ~CublasLtGemm();
  CublasLtGemm(const CublasLtGemm&) = delete;
  CublasLtGemm& operator=(const CublasLtGemm&) = delete;

  // Kernels of the table; `type` is that of activations, `kernels` form gradients of biases and
  // GELU where the library does not do so in passing.
  void forward(cudaStream_t stream, DType type, const LinearForward& arguments);
  void backward_input(cudaStream_t stream, DType type, const LinearBackwardInput& arguments);
  void backward_weight(Queue& queue, DType type, const LinearBackwardWeight& arguments,
                       const KernelTable& kernels);
  void gelu_forward(Queue& queue, DType type, const LinearGeluForward& arguments,
                    const KernelTable& kernels);
  void gelu_backward_input(Queue& queue, DType type, const LinearGeluBackwardInput& arguments,
                           const KernelTable& kernels);

  // Times what the library proposes for each product on arrays of random numbers, and keeps the
  // fastest; products that have a selection already, or for whose arrays there is no memory, are
  // passed over. `kernels` as above. Takes memory and gives it back; not within a step.
  void search(const std::vector<GemmKey>& keys, int64_t workspace_bytes, Queue& queue,
              const KernelTable& kernels);
  GemmSelections& selections() { return selections_; }
  // Drops what was planned, so that selections() count from the next call on.
  void forget_plans();

  std::string description() const { return lt_.description(); }
  bool tf32() const { return tf32_; }

 private:
  struct Planned;
  std::unique_ptr<Planned> describe(const GemmKey& key, int fused) const;
  std::vector<GemmSelection> proposals(const Planned& planned, int fused, int64_t workspace_bytes,
                                       int most) const;
  // How much of products of that kind, with GELU, was found faster fused.
  int preferred_fusion(const GemmKey& key) const;
  Planned& plan_for(const GemmKey& key, int64_t workspace_bytes);
  // Puts the gradient of a bias that the call assigns before the library's workspace.
  void place_bias_gradient(const Planned& planned, GemmArguments& arguments) const;
  // Adds it, f32 or of activations' type, to dbias.
  void add_bias_gradient(const Planned& planned, const GemmArguments& arguments, void* dbias,
                         Queue& queue, const KernelTable& kernels) const;
  void finish_gelu_gradient(const Planned& planned, const GemmArguments& arguments,
                            const LinearGeluBackwardInput& f, Queue& queue,
                            const KernelTable& kernels) const;
  // The library's answer; it may refuse the algorithm.
  cublasStatus_t run(const Planned& planned, const GemmArguments& arguments,
                     cudaStream_t stream) const;
  // The same for an algorithm that was found: throws Error(Exit::peer) where the library refuses.
  void call(const GemmKey& key, const Planned& planned, const GemmArguments& arguments,
            cudaStream_t stream) const;
  GemmSelection timed_selection(const GemmKey& key, const Workspace& workspace, Queue& queue,
                                const KernelTable& kernels) const;

  CublasLt lt_;
  cublasLtHandle_t handle_ = nullptr;
  bool tf32_;
  GemmSelections selections_;
  std::map<GemmKey, std::unique_ptr<Planned>> planned_;
};

}  // namespace gptbench
