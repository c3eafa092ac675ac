// The linear layers of a virtual stage, in the type of activations or in fp8 (plan/fp8.h). In fp8
// the outputs of norm and activation, which linear layers alone read, and the gradient before the
// activation are written as copies by the operations that form them; the output of attention is
// kept and converted before each GEMM, with the same scale and therefore to the same bytes. Other
// dy are converted once for both gradients where they are formed together. Internal to the plan
// layer.
#pragma once

#include <array>
#include <vector>

#include "plan/activation_store.h"

namespace gptbench {

class LinearLayers {
 public:
  // Adds the buffers of fp8 copies.
  LinearLayers(const StageBuilder& stage, const ResidualStream& stream);

  // y = x W^T + bias, where x is the activation that the layer reads.
  void emit_forward(int64_t l, Linear linear, const LayerActivations& a, Operand y, bool repeats);
  void emit_input_gradient(int64_t l, Linear linear, Operand dy, Operand dx, const Pass& pass);
  // `part`: the rows of dy that this rank works on beside the GEMM (sequence parallelism).
  void emit_weight_gradient(int64_t l, Linear linear, const LayerActivations& a, Operand part,
                            Operand dy);
  // In fp8: the copies made by the operation that forms x of qkv and fc (a norm), x of mlp_proj
  // (the activation) or dy of fc. read: by a GEMM of the forward pass that follows.
  void set_norm_copy(Op& norm, int64_t l, Linear linear, const LayerActivations& a) const;
  void set_activation_copy(Op& activation, int64_t l, const LayerActivations& a, bool repeats,
                           bool read) const;
  void set_dfc_copies(Op& activation_backward, int64_t l, const Pass& pass) const;
  // The gradient of the layer's bias where the operation that assigns dy adds it up
  // (DeviceTraits::single_pass); absent where the layer's own operations do.
  Operand sums_of_dy(int64_t l, Linear linear) const;

 private:
  struct Layer {
    int weight, bias;  // tensors
    int64_t K, N;
    bool row_parallel;  // tensor-parallel ranks hold columns of W, and their results are summed
  };
  struct Copies {
    int as_it_is = -1, transposed = -1;
  };
  const Layer& layer(int64_t l, Linear linear) const;
  void add_copies();
  // Whether W's gradient finds x transposed, as the activation wrote it beside the copy (on GPUs).
  // Rows of a transposed array are padded; this is done where sequences of this rank need none.
  bool is_transposed_at_once(Linear linear) const;
  Operand input(const LayerActivations& a, Linear linear) const;
  Operand full_input(int64_t l, Linear linear, const LayerActivations& a) const;
  Operand gradient_input(int64_t l, Linear linear, const LayerActivations& a) const;
  Operand weight(int64_t l, Linear linear, bool transposed) const;
  Operand bias_gradient(int64_t l, Linear linear) const;
  void emit_attention_copy(int64_t l, const LayerActivations& a, bool transposes,
                           bool repeats) const;
  ops::Fp8CopyOperands dy_copies(int64_t l, Linear linear, const Pass& pass) const;
  void emit_gemm(Op op, int64_t l, Linear linear, Fp8Role left, Fp8Role right,
                 bool repeats = false) const;
  const Copies& of_x(Linear linear) const { return x_[static_cast<size_t>(linear)]; }
  const Copies& of_dy(Linear linear) const { return dy_[static_cast<size_t>(linear)]; }

  const StageBuilder& stage_;
  const Fp8State* fp8_;
  bool transposes_;                                     // GEMMs in fp8 read transposed factors
  int full_;                                            // [R, C] all rows of x
  std::vector<std::array<Layer, num_linears>> layers_;  // [layer - first]
  std::array<Copies, num_linears> x_, dy_;              // [R, K] and [R, N], or transposed
  int full_copy_ = -1;                                  // [R, C] all rows of a copy of x
};

}  // namespace gptbench
