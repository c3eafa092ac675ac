// Backward programs of a virtual stage. Without split weight gradients a layer's two kinds of
// gradients alternate, so that messages of the one overlap with the other.
#include <algorithm>

#include "plan/chunk_programs.h"

namespace gptbench {

void ChunkPrograms::emit_backward(Pass pass) {
  const Plan& plan = builder_.plan();
  const int64_t first = chunk_.first_layer, end = chunk_.end_layer;
  const auto gather = [&](int64_t l) {
    if (pass.inputs && l >= first)
      store_.gather(unit_of(l));  // gradients of activations read weights
  };
  const auto load = [&](int64_t group) {
    if (group < 0) return;
    offload_.load(ActivationOffload::forward, group);
    if (!pass.inputs) offload_.load(ActivationOffload::backward, group);
  };
  if (first < end) load(group_of(end - 1));
  if (chunk_.has_head) {
    if (pass.inputs) store_.gather(plan.space.find_unit(UnitKind::final_norm));
    if (first < end) gather(full_recompute_ ? segment_start(end - 1) : end - 1);
    emit_head_backward(pass);
  }
  for (int64_t l = end - 1; l >= first; --l) {
    const bool segment_ends = l == end - 1 || segment_start(l) != segment_start(l + 1);
    if (segment_ends) load(group_of(l) - 1);
    if (pass.inputs && full_recompute_ && segment_ends) emit_recompute(segment_start(l), l + 1);
    gather(l);
    // One layer ahead: the next in this direction, or the first of the segment to be repeated next.
    const bool segment_begins = full_recompute_ && l == segment_start(l) && l > first;
    const int64_t ahead = segment_begins ? segment_start(l - 1) : l - 1;
    if ((l - ahead) % 2 == 1) gather(ahead);  // layers of one parity share a window
    const LayerActivations a = backward_set(l);
    if (selective_) emit_selective_recompute(l, a);
    store_.open_gradient(unit_of(l));
    if (pass.inputs)
      emit_layer_input_gradients(l, a, pass);
    else
      emit_layer_weight_gradients(l, a);
    if (split_ && pass.inputs) offload_.store(ActivationOffload::backward, group_of(l));
    store_.fold_gradient(unit_of(l));
    if (pass.weights) store_.reduce_gradient(unit_of(l), pass.last);
  }
  if (chunk_.has_embedding) {
    emit_embedding_backward(pass);
  } else if (pass.inputs) {
    MessageSize message{per_row(s_.C), size_of(builder_.A())};
    message.peer = plan.stage_peer(-1);
    message.tag = static_cast<int32_t>(2 * (chunk_.virtual_stage - 1) + 1);
    builder_.emit(
        ops::send({QueueId::send_backward, Axis::pipeline}, message, {dx_}, {first, sp_}));
  }
}

// Repeats the forward pass of a checkpointed segment into the working set of each of its layers;
// what only the next layer's input would need is left out for the last.
void ChunkPrograms::emit_recompute(int64_t first, int64_t end) {
  for (int64_t l = first; l < end; ++l) {
    store_.gather(unit_of(l));
    if (l + 1 < end) store_.gather(unit_of(l + 1));
    const LayerActivations a = backward_set(l);
    const Operand next = l + 1 < end ? Operand{backward_set(l + 1).x} : Operand{};
    emit_layer_forward(l, a, {a.x}, next, true);
  }
}

void ChunkPrograms::emit_selective_recompute(int64_t l, const LayerActivations& a) {
  emit_layer_norm(l, Linear::qkv, a, {a.x}, true);
  emit_layer_norm(l, Linear::fc, a, {a.x_mid}, true);
  emit_activation_forward(l, a, true, false);
}

Operand ChunkPrograms::emit_dropout_backward(int64_t l, int32_t site, Operand dy, int buffer) {
  if (builder_.plan().config.model.dropout <= 0.0) return dy;
  builder_.emit(ops::dropout_backward({l, sp_}, site, s_.C, dy, {buffer}));
  return {buffer};
}

// dx holds the gradient with respect to the layer's output and is turned, in place, into that with
// respect to its input: the residual path adds, the branches accumulate through their LayerNorms.
void ChunkPrograms::emit_layer_input_gradients(int64_t l, const LayerActivations& a, Pass pass) {
  const LayerGradients& d = gradients_[split_ ? static_cast<size_t>(l - chunk_.first_layer) : 0];
  const Operand dx{dx_}, dfc{d.dfc}, dqkv{d.dqkv}, dbranch{dbranch_};
  // Gradient at a branch's output, kept where the weight gradients are formed later.
  const auto at_branch = [&](int32_t site, int kept) {
    const Operand dropped = emit_dropout_backward(l, site, dx, split_ ? kept : ddropped_);
    if (!split_ || dropped.buffer == kept) return dropped;
    builder_.emit(ops::copy(per_row(s_.C), dx, {kept}, {l, sp_}));
    return Operand{kept};
  };

  const Operand dmlp = at_branch(mlp_site, d.dmlp);
  const Operand dmlp_full = to_full(l, dmlp, dfull_);
  const Operand dactivation = dactivation_ >= 0 ? Operand{dactivation_} : dfc;
  emit_input_product(l, Linear::mlp_proj, dmlp_full, dactivation, pass);
  emit_activation_backward(l, a, dactivation, dfc, pass);
  emit_input_product(l, Linear::fc, dfc, dbranch, pass);
  const Operand dln_2 = reduce(l, dbranch, dbranch_s_);
  if (pass.weights) emit_mlp_weights(l, a, dmlp, dmlp_full, dfc);
  emit_norm_backward(l, dln_2, {a.x_mid}, norm_before(l, Linear::fc, a));

  begin_attention_backward(l, a);
  const Operand dproj = at_branch(proj_site, d.dproj);
  const Operand dproj_full = to_full(l, dproj, dfull_);
  emit_input_product(l, Linear::attn_proj, dproj_full, {dattention_}, pass);
  emit_attention_backward(l, a, dqkv);
  emit_input_product(l, Linear::qkv, dqkv, dbranch, pass);
  const Operand dln_1 = reduce(l, dbranch, dbranch_s_);
  if (pass.weights) emit_attention_weights(l, a, dproj, dproj_full, dqkv);
  emit_norm_backward(l, dln_1, {a.x}, norm_before(l, Linear::qkv, a));
}

void ChunkPrograms::emit_layer_weight_gradients(int64_t l, const LayerActivations& a) {
  const LayerGradients& d = gradients_[static_cast<size_t>(l - chunk_.first_layer)];
  emit_mlp_weights(l, a, {d.dmlp}, to_full(l, {d.dmlp}, dfull_), {d.dfc});
  emit_attention_weights(l, a, {d.dproj}, to_full(l, {d.dproj}, dfull_), {d.dqkv});
}

// A norm's parameters have their gradients formed with those of its input: they cost nothing
// beside.
void ChunkPrograms::emit_norm_backward(int64_t l, Operand dy, Operand x, const Norm& norm) {
  emit_norm_backward_to({dx_}, l, dy, x, norm);
}

void ChunkPrograms::emit_norm_backward_to(Operand dx, int64_t l, Operand dy, Operand x,
                                          const Norm& norm) {
  ops::NormOperands operands;
  operands.weight = store_.weight(norm.weight);
  operands.mean = {norm.mean};
  operands.rstd = {norm.rstd};
  builder_.emit(ops::norm_backward(family_.norm, {l, sp_}, s_.C, dy, x, operands,
                                   {dx, store_.gradient(norm.weight), store_.gradient(norm.bias)}));
}

void ChunkPrograms::emit_activation_backward(int64_t l, const LayerActivations& a,
                                             Operand dactivation, Operand dfc, Pass pass) {
  const bool copies = fp8_ != nullptr;
  const bool wanted = !copies || split_;  // by later products
  Op op = ops::activation_backward(family_.activation, {l}, s_.F, dactivation, {a.fc},
                                   wanted ? dfc : Operand{});
  if (copies) {
    const int* const to = fp8_dy_[static_cast<int>(Linear::fc)];
    ops::set_fp8_copy(op,
                      fp8_copies(l, Linear::fc, Fp8Role::dy, {to[0]},
                                 fp8_->transposes() && pass.weights ? Operand{to[1]} : Operand{},
                                 pass.weights ? bias_gradient(l, Linear::fc) : Operand{}));
  }
  builder_.emit(op);
}

void ChunkPrograms::emit_mlp_weights(int64_t l, const LayerActivations& a, Operand dmlp,
                                     Operand dmlp_full, Operand dfc) {
  emit_weight_product(l, Linear::mlp_proj, a, dmlp, dmlp_full);
  emit_weight_product(l, Linear::fc, a, dfc, dfc);
}

void ChunkPrograms::emit_attention_weights(int64_t l, const LayerActivations& a, Operand dproj,
                                           Operand dproj_full, Operand dqkv) {
  emit_weight_product(l, Linear::attn_proj, a, dproj, dproj_full);
  emit_weight_product(l, Linear::qkv, a, dqkv, dqkv);
}

}  // namespace gptbench
