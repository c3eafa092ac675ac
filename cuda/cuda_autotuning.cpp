#include "cuda/cuda_autotuning.h"

#include "base/error.h"
#include "cuda/attention/limits.h"
#include "cuda/cuda_error.h"
#include "cuda/kernels.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

int64_t scratch_bytes(const Plan& plan) {
  return plan.buffer_index.scratch < 0
             ? 0
             : plan.buffers[static_cast<size_t>(plan.buffer_index.scratch)].elements;
}

ComputeType compute_of(const GemmKey& key) {
  return key.type == DType::f32   ? ComputeType::fp32
         : key.type == DType::f16 ? ComputeType::fp16
                                  : ComputeType::bf16;  // fp8 beside bf16
}

}  // namespace

CudaAutotuning::CudaAutotuning(int ordinal, const CudaOptions& options)
    : ordinal_(ordinal), gemms_(options.tf32) {
  if (options.attention != AttentionKernels::native)
    attention_ = make_cudnn_attention(
        {options.attention == AttentionKernels::cudnn, options.deterministic}, attention_obstacle_);
  if (options.attention == AttentionKernels::cudnn && attention_ == nullptr)
    throw Error(Exit::usage, attention_obstacle_);
}

std::string CudaAutotuning::description() const {
  return gemms_.description() + (attention_ != nullptr ? ", " + attention_->description() : "") +
         (gemms_.tf32() ? ", fp32 products in tf32" : "");
}

void CudaAutotuning::select(const Plan& plan) {
  cudaDeviceProp gpu;
  GPTBENCH_CUDA(cudaGetDeviceProperties(&gpu, ordinal_));
  check_attention(plan, gpu.name, static_cast<int64_t>(gpu.sharedMemPerBlockOptin));
  const std::vector<GemmKey> keys = gemms_of(plan);
  if (keys.empty()) return;
  CudaQueue queue;  // without libraries: what they are compared with is our own
  const ComputeType compute = compute_of(keys.front());
  gemms_.search(keys, gemm_workspace_bytes, queue, cuda_kernels(compute));
  if (attention_ != nullptr)
    attention_->search(attentions_of(plan), scratch_bytes(plan), queue, cuda_kernels(compute));
  queue.synchronize();
}

void CudaAutotuning::reuse(const std::string& text) {
  if (text.find("gemm_library=") == std::string::npos)
    throw Error(Exit::io,
                "run.algorithms names a file without GEMM algorithms of cuBLASLt; name a result of "
                "device = 'cuda', or use algorithms = '' (a timed search)");
  GemmSelections gemms;
  gemms.library = gemms_.selections().library;
  gemms.add(text);
  AttentionSelections attention;
  if (attention_ != nullptr) {
    attention.library = attention_->selections().library;
    attention.add(text);
    attention_->selections() = attention;
    attention_->forget_plans();
  }
  gemms_.selections() = gemms;
  gemms_.forget_plans();
}

std::string CudaAutotuning::selected() {
  const std::string gemms = gemms_.selections().text();
  if (attention_ != nullptr) return gemms + attention_->selections().text();
  return attention_obstacle_.empty() ? gemms
                                     : gemms + "attention=native, " + attention_obstacle_ + "\n";
}

}  // namespace gptbench
