// Kernels that are wrong in one respect each, by which the verification is verified.
#pragma once

#include <vector>

#include "wrapped_device.h"

namespace gptbench {

// Breaks one entry of a table of type A; what it replaces is kept for it to call.
struct BrokenKernel {
  const char* name;  // "gelu_backward scaled by 1.01"
  bool beyond_bf16;  // wrong by more than the roundoff of bf16
  void (*install_f32)(KernelTable&);
  void (*install_bf16)(KernelTable&);
  void (*install_f16)(KernelTable&);
};
const std::vector<BrokenKernel>& broken_kernels();
// Those that a run in fp8 finds, and some of fp8 alone.
std::vector<BrokenKernel> broken_kernels_in_fp8();
// Kernels that are wrong on padded sequences.
const std::vector<BrokenKernel>& broken_kernels_of_padding();

// The host with one kernel broken; null: sound. `tf32`: products of fp32 are tf32_products().
class BrokenDevice final : public WrappedDevice {
 public:
  BrokenDevice(const BrokenKernel* broken, bool tf32)
      : WrappedDevice(make_host_device(DeviceKind::host)), broken_(broken), tf32_(tf32) {}
  const KernelTable& kernels(ComputeType compute) const override;

 private:
  const BrokenKernel* broken_;
  bool tf32_;
  mutable KernelTable table_{};
};

}  // namespace gptbench
