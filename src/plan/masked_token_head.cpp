#include "plan/masked_token_head.h"

#include <utility>

namespace gptbench {

MaskedTokenHead::MaskedTokenHead(const StageBuilder& stage, int ln_f, int dln_f)
    : stage_(stage),
      ln_f_(ln_f),
      dln_f_(dln_f),
      unit_(stage.plan.space.find_unit(UnitKind::head)),
      logits_bias_(stage.builder.tensor("mlm.bias")),
      dense_(find_dense("mlm.dense")),
      pooler_(find_dense("pooler")),
      classes_(find_dense("nsp")),
      norm_(stage.find_norm("mlm.ln")) {
  const DType A = stage.builder.A(), S = stage.builder.S();
  const int64_t C = stage.s.C, T = stage.s.T;
  const auto rows = [&](const char* what) { return stage.temporary(what, A, C, stage.sp); };
  dense_out_ = rows("mlm_dense");
  gelu_ = rows("mlm_gelu");
  decoder_.x = rows("mlm_ln");
  norm_.mean = stage.temporary("mlm_ln_mean", S, 1, stage.sp);
  norm_.rstd = stage.temporary("mlm_ln_rstd", S, 1, stage.sp);
  decoder_.dx = rows("dmlm_ln");
  dgelu_ = rows("dmlm_gelu");
  if (stage.sp > 1) {
    decoder_.x_full = stage.temporary("mlm_ln_full", A, C);
    decoder_.dx_full = stage.temporary("dmlm_ln_full", A, C);
  }
  first_ = stage.temporary("first", A, C, T);
  pooled_ = stage.temporary("pooled", A, C, T);
  dpooled_ = stage.temporary("dpooled", A, C, T);
  dfirst_ = stage.temporary("dfirst", A, C, T);
  logits_ = stage.temporary("sentence_logits", A, 2, T);
  statistics_ = stage.temporary("sentence_statistics", S, 3, T);
}

MaskedTokenHead::Dense MaskedTokenHead::find_dense(const char* name) const {
  const std::string prefix = name;
  return {stage_.builder.tensor(prefix + ".weight"), stage_.builder.tensor(prefix + ".bias")};
}

void MaskedTokenHead::emit_transform() const {
  const int64_t C = stage_.s.C;
  const ops::Rows rows{stage_.plan.shape.L, stage_.sp};
  const auto emit = [&](const Op& op) { stage_.emit_in(Region::head_loss, op); };
  const Operand weight = stage_.weights.of(dense_.weight), bias = stage_.weights.of(dense_.bias);
  emit(ops::linear_forward(rows, {C, C}, {ln_f_}, weight, bias, {dense_out_}));
  emit(ops::activation_forward(ActivationKind::gelu, rows, C, {dense_out_}, {gelu_}));
  stage_.emit(stage_.norm_forward(rows.layer, {gelu_}, norm_, {decoder_.x}));
}

void MaskedTokenHead::emit_transform_backward() const {
  const int64_t C = stage_.s.C;
  const ops::Rows rows{stage_.plan.shape.L, stage_.sp};
  const Operand dgelu{dgelu_};
  const auto emit = [&](const Op& op) { stage_.emit_in(Region::head_loss, op); };
  emit(ops::fill_zero(per_row(C), dgelu, rows));
  stage_.emit_norm_backward(rows.layer, {decoder_.dx}, {gelu_}, norm_, dgelu);
  emit(ops::activation_backward(ActivationKind::gelu, rows, C, dgelu, {dense_out_}, dgelu));
  emit(ops::linear_backward_weight(rows, {C, C}, dgelu, {ln_f_}, stage_.gradients.of(dense_.weight),
                                   stage_.gradients.of(dense_.bias)));
  // Its reduction travels while the gradient of the input is formed.
  stage_.gradients.fold(unit_);
  emit(ops::linear_backward_input(rows, {C, C}, dgelu, stage_.weights.of(dense_.weight), {dln_f_}));
  emit_of_sequences(ops::row_op(OpKind::first_rows_backward, {rows.layer}, C,
                                {{Slot::dy, {dfirst_}}, {Slot::dx, {dln_f_}}}));
}

// An operation with a row for each sequence.
void MaskedTokenHead::emit_of_sequences(Op op) const {
  op.sequence_rows = stage_.plan.shape.T;
  op.row_div = stage_.sp;
  op.part = stage_.sp > 1 ? static_cast<int32_t>(stage_.plan.at.tensor) : 0;
  stage_.emit_in(op.kind == OpKind::load_labels ? Region::data : Region::head_loss, std::move(op));
}

void MaskedTokenHead::emit_next_sentence() const {
  const Plan& plan = stage_.plan;
  const int64_t L = plan.shape.L, C = stage_.s.C;
  const ops::Rows rows{L};
  const GemmSize pooler{C, C}, classes{C, 2};
  const auto weight = [&](int tensor) { return stage_.weights.of(tensor); };
  const auto gradient = [&](int tensor) { return stage_.gradients.of(tensor); };
  const Operand pooler_weight = weight(pooler_.weight), pooler_bias = weight(pooler_.bias);
  const Operand nsp_weight = weight(classes_.weight), nsp_bias = weight(classes_.bias);
  const Operand first{first_}, pooled{pooled_}, dpooled{dpooled_}, logits{logits_};
  const auto emit = [&](const Op& op) { emit_of_sequences(op); };
  emit(ops::load_labels(L, {plan.buffer_index.labels}));
  emit(ops::row_op(OpKind::first_rows_forward, rows, C, {{Slot::x, {ln_f_}}, {Slot::y, first}}));
  emit(ops::linear_forward(rows, pooler, first, pooler_weight, pooler_bias, pooled));
  emit(ops::row_op(OpKind::tanh_forward, rows, C, {{Slot::x, pooled}, {Slot::y, pooled}}));
  emit(ops::linear_forward(rows, classes, pooled, nsp_weight, nsp_bias, logits));
  const int64_t sequences = plan.micro_batches.rows / plan.shape.T;
  const LossSize size{2, 2, 0, 1.0 / static_cast<double>(plan.config.batch.global_batch_size)};
  const ops::LossStatistics statistics{
      {statistics_, 0}, {statistics_, sequences}, {statistics_, 2 * sequences}};
  // Without sequence parallelism all tensor-parallel ranks see all sequences: one counts them.
  const bool counts = stage_.sp > 1 || plan.at.tensor == 0;
  const Scalar sum = counts ? Scalar::sentence_loss_sum : Scalar::unused;
  emit(ops::cross_entropy_statistics(L, size, logits, {plan.buffer_index.labels}, statistics));
  emit(ops::cross_entropy_finish(L, size, logits, {plan.buffer_index.labels}, statistics,
                                 {{plan.buffer_index.loss_scale}, {}, plan.scalar(sum)}));
  emit(ops::linear_backward_weight(rows, classes, logits, pooled, gradient(classes_.weight),
                                   gradient(classes_.bias)));
  emit(ops::linear_backward_input(rows, classes, logits, nsp_weight, dpooled));
  emit(ops::row_op(OpKind::tanh_backward, rows, C,
                   {{Slot::dy, dpooled}, {Slot::y, pooled}, {Slot::dx, dpooled}}));
  emit(ops::linear_backward_weight(rows, pooler, dpooled, first, gradient(pooler_.weight),
                                   gradient(pooler_.bias)));
  emit(ops::linear_backward_input(rows, pooler, dpooled, pooler_weight, {dfirst_}));
}

}  // namespace gptbench
