// The transformer layers of a virtual stage (norms before the branches), layer by layer. Internal
// to the plan layer.
#pragma once

#include <array>
#include <vector>

#include "plan/attention_layers.h"
#include "plan/linear_layers.h"

namespace gptbench {

class TransformerLayers {
 public:
  // Adds the buffers of attention and of linear layers to the plan.
  TransformerLayers(const StageBuilder& stage, const ResidualStream& stream,
                    const ActivationStore& activations);

  // From x to x_next, the input of the next layer.
  void emit_forward(int64_t l, Operand x, Operand x_next);
  // Repeats the forward pass of the checkpointed segment [first, end) into the working set of each
  // of its layers.
  void emit_segment(int64_t first, int64_t end);
  // Repeats outputs of norms and activation.
  void emit_selective(int64_t l);
  // stream.dx holds the gradient with respect to the layer's output and becomes, in place, that
  // with respect to its input: the residual path adds, the branches accumulate through their norms.
  // With pass.weights, gradients of the parameters alternate with these.
  void emit_input_gradients(int64_t l, const Pass& pass);
  // Target of the sums over the rows of dx (the gradient with respect to the layer's output), which
  // the norm that forms dx adds; absent where the layer forms them.
  Operand sums_of_dx(int64_t l) const;
  // From what input gradients have kept.
  void emit_weight_gradients(int64_t l);

 private:
  // Absent where linear layers alone would read it, and read fp8 copies.
  Operand unless_fp8(int buffer) const { return {stage_.fp8 == nullptr ? buffer : -1}; }
  void emit_layer(int64_t l, const LayerActivations& a, Operand x, Operand x_next, bool repeats);
  Norm norm_before(int64_t l, Linear linear, const LayerActivations& a) const;  // qkv or fc
  void emit_norm(int64_t l, Linear linear, const LayerActivations& a, Operand x, bool repeats);
  void emit_activation(int64_t l, const LayerActivations& a, bool repeats, bool read);
  Operand at_branch(int64_t l, int32_t site, int kept) const;

  const StageBuilder& stage_;
  const ResidualStream& stream_;
  const ActivationStore& activations_;
  AttentionLayers attention_;
  LinearLayers linear_;
  std::vector<std::array<Norm, 2>> norms_;  // [layer - first]: tensors of the first and the second
};

}  // namespace gptbench
