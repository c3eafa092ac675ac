#include "plan/device_traits.h"

#include <algorithm>

#include "plan/plan.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

int64_t host_scratch_bytes(const Plan& plan) {
  const bool doubles = type_of_activations(plan.config) == Precision::fp64;
  const int64_t element = size_of(doubles ? DType::f64 : DType::f32);  // S of kernels.h
  return std::max(gemm_workspace_bytes,
                  plan.device.threads *
                      attention_workspace_bytes_per_thread(plan.T_local(), plan.shape.D, element));
}

// Attention that cuDNN does not support (device_setup.cpp reports it) needs less.
int64_t cuda_scratch_bytes(const Plan& plan) {
  const Config& config = plan.config;
  const int64_t B = config.batch.micro_batch_size, H = plan.local.H, T = plan.T_local();
  const bool may_use_cudnn = config.run.attention != AttentionKernels::native &&
                             !config.run.deterministic &&
                             size_of(dtype_of(type_of_activations(config))) == 2 &&
                             config.model.dropout == 0.0 && plan.grid.context == 1;
  return std::max(gemm_workspace_bytes, may_use_cudnn
                                            ? cudnn_attention_workspace_bytes(B, H, T, plan.shape.D)
                                            : cuda_attention_workspace_bytes(B, H, T));
}

}  // namespace

DeviceTraits device_traits(DeviceKind kind, int64_t threads) {
  DeviceTraits traits;
  traits.threads = threads;
  if (kind == DeviceKind::ref) return traits;  // plain loops
  traits.scratch_bytes = host_scratch_bytes;
  if (kind != DeviceKind::cuda) return traits;
  traits.fuses = traits.single_pass = traits.replays = traits.transposes_fp8 = true;
  traits.head_rows = 16384;
  traits.fp8_multiple = 16;  // of cuBLASLt's fp8 products
  traits.scratch_bytes = cuda_scratch_bytes;
  return traits;
}

}  // namespace gptbench
