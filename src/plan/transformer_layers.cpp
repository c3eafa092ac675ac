#include "plan/transformer_layers.h"

namespace gptbench {

TransformerLayers::TransformerLayers(const StageBuilder& stage, const ResidualStream& stream,
                                     const ActivationStore& activations)
    : stage_(stage),
      stream_(stream),
      activations_(activations),
      attention_(stage, stream),
      linear_(stage, stream) {
  for (int64_t l = stage.chunk.first_layer; l < stage.chunk.end_layer; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    norms_.push_back({stage.find_norm(h + "ln_1"), stage.find_norm(h + "ln_2")});
  }
}

void TransformerLayers::emit_forward(int64_t l, Operand x, Operand x_next) {
  emit_layer(l, activations_.forward_set(l), x, x_next, false);
}

void TransformerLayers::emit_segment(int64_t first, int64_t end) {
  for (int64_t l = first; l < end; ++l) {
    stage_.weights.gather(stage_.layer_unit(l));
    if (l + 1 < end) stage_.weights.gather(stage_.layer_unit(l + 1));
    const LayerActivations a = activations_.backward_set(l);
    // Nobody reads the output of the last one.
    const Operand next = l + 1 < end ? Operand{activations_.backward_set(l + 1).x} : Operand{};
    emit_layer(l, a, {a.x}, next, true);
  }
}

void TransformerLayers::emit_selective(int64_t l) {
  const LayerActivations a = activations_.backward_set(l);
  emit_norm(l, Linear::qkv, a, {a.x}, true);
  emit_norm(l, Linear::fc, a, {a.x_mid}, true);
  emit_activation(l, a, true, false);
}

// Without x_next, only what backward reads.
void TransformerLayers::emit_layer(int64_t l, const LayerActivations& a, Operand x, Operand x_next,
                                   bool repeats) {
  const Operand branch{stream_.branch};
  const auto emit_sum = [&](int32_t site, Operand residual, Operand sum) {
    const Operand added = stage_.reduce(l, branch, stream_.branch_part);
    stage_.emit(ops::residual_forward({l, stage_.sp}, site, stage_.s.C, residual, added, sum),
                repeats);
  };
  emit_norm(l, Linear::qkv, a, x, repeats);
  linear_.emit_forward(l, Linear::qkv, a, {a.qkv}, repeats);
  attention_.emit_forward(l, a, repeats);
  linear_.emit_forward(l, Linear::attn_proj, a, branch, repeats);
  emit_sum(proj_site, x, {a.x_mid});

  emit_norm(l, Linear::fc, a, {a.x_mid}, repeats);
  linear_.emit_forward(l, Linear::fc, a, {a.fc}, repeats);
  const bool ends = x_next.buffer < 0;
  emit_activation(l, a, repeats, !ends);
  if (ends) return;
  linear_.emit_forward(l, Linear::mlp_proj, a, branch, repeats);
  emit_sum(mlp_site, {a.x_mid}, x_next);
}

Norm TransformerLayers::norm_before(int64_t l, Linear linear, const LayerActivations& a) const {
  const bool first = linear == Linear::qkv;
  Norm norm = norms_[static_cast<size_t>(l - stage_.chunk.first_layer)][first ? 0 : 1];
  norm.mean = first ? a.ln_1_mean : a.ln_2_mean;
  norm.rstd = first ? a.ln_1_rstd : a.ln_2_rstd;
  return norm;
}

void TransformerLayers::emit_norm(int64_t l, Linear linear, const LayerActivations& a, Operand x,
                                  bool repeats) {
  const Operand y = unless_fp8(linear == Linear::qkv ? a.ln_1 : a.ln_2);
  Op op = stage_.norm_forward(l, x, norm_before(l, linear, a), y);
  linear_.set_norm_copy(op, l, linear, a);
  stage_.emit(op, repeats);
}

// read: by a GEMM of the forward pass that follows.
void TransformerLayers::emit_activation(int64_t l, const LayerActivations& a, bool repeats,
                                        bool read) {
  const ModelShape& s = stage_.s;
  Op op = ops::activation_forward(s.family.activation, {l}, s.F, {a.fc}, unless_fp8(a.activation));
  linear_.set_activation_copy(op, l, a, repeats, read);
  stage_.emit(op, repeats);
}

// Gradient at a branch's output, kept where the weight gradients are formed later.
Operand TransformerLayers::at_branch(int64_t l, int32_t site, int kept) const {
  const Operand dx{stream_.dx};
  const Operand dropped =
      stage_.dropout_backward(l, site, dx, stage_.splits ? kept : stream_.ddropped);
  if (!stage_.splits || dropped.buffer == kept) return dropped;
  stage_.emit(ops::copy(per_row(stage_.s.C), dx, {kept}, {l, stage_.sp}));
  return {kept};
}

void TransformerLayers::emit_input_gradients(int64_t l, const Pass& pass) {
  const LayerActivations a = activations_.backward_set(l);
  const LayerGradients& d = activations_.gradients(l);
  const Operand dx{stream_.dx}, dfc{d.dfc}, dqkv{d.dqkv}, dbranch{stream_.dbranch};

  const Operand dmlp = at_branch(l, mlp_site, d.dmlp);
  const Operand dmlp_full = stage_.to_full(l, dmlp, stream_.dfull);
  const Operand dactivation = stream_.dactivation >= 0 ? Operand{stream_.dactivation} : dfc;
  linear_.emit_input_gradient(l, Linear::mlp_proj, dmlp_full, dactivation, pass);
  // dfc is absent where its fp8 copies are all that GEMMs read.
  Op op = ops::activation_backward(stage_.s.family.activation, {l}, stage_.s.F, dactivation, {a.fc},
                                   stage_.splits ? dfc : unless_fp8(d.dfc));
  linear_.set_dfc_copies(op, l, pass);
  stage_.emit(op);
  linear_.emit_input_gradient(l, Linear::fc, dfc, dbranch, pass);
  const Operand dln_2 = stage_.reduce(l, dbranch, stream_.dbranch_part);
  if (pass.weights) {
    linear_.emit_weight_gradient(l, Linear::mlp_proj, a, dmlp, dmlp_full);
    linear_.emit_weight_gradient(l, Linear::fc, a, dfc, dfc);
  }
  stage_.emit_norm_backward(l, dln_2, {a.x_mid}, norm_before(l, Linear::fc, a), dx,
                            linear_.sums_of_dy(l, Linear::attn_proj));

  attention_.begin_backward(l, a);
  const Operand dproj = at_branch(l, proj_site, d.dproj);
  const Operand dproj_full = stage_.to_full(l, dproj, stream_.dfull);
  linear_.emit_input_gradient(l, Linear::attn_proj, dproj_full, {stream_.dattention}, pass);
  attention_.emit_backward(l, a, dqkv);
  linear_.emit_input_gradient(l, Linear::qkv, dqkv, dbranch, pass);
  const Operand dln_1 = stage_.reduce(l, dbranch, stream_.dbranch_part);
  if (pass.weights) {
    linear_.emit_weight_gradient(l, Linear::attn_proj, a, dproj, dproj_full);
    linear_.emit_weight_gradient(l, Linear::qkv, a, dqkv, dqkv);
  }
  stage_.emit_norm_backward(l, dln_1, {a.x}, norm_before(l, Linear::qkv, a), dx, sums_of_dx(l - 1));
}

Operand TransformerLayers::sums_of_dx(int64_t l) const {
  return l < stage_.chunk.first_layer ? Operand{} : linear_.sums_of_dy(l, Linear::mlp_proj);
}

void TransformerLayers::emit_weight_gradients(int64_t l) {
  const LayerActivations a = activations_.backward_set(l);
  const LayerGradients& d = activations_.gradients(l);
  const Operand dmlp{d.dmlp}, dproj{d.dproj}, dfc{d.dfc}, dqkv{d.dqkv};
  const Operand dmlp_full = stage_.to_full(l, dmlp, stream_.dfull);
  linear_.emit_weight_gradient(l, Linear::mlp_proj, a, dmlp, dmlp_full);
  linear_.emit_weight_gradient(l, Linear::fc, a, dfc, dfc);
  const Operand dproj_full = stage_.to_full(l, dproj, stream_.dfull);
  linear_.emit_weight_gradient(l, Linear::attn_proj, a, dproj, dproj_full);
  linear_.emit_weight_gradient(l, Linear::qkv, a, dqkv, dqkv);
}

}  // namespace gptbench
