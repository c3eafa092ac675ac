// The head of BERT (Devlin et al., arXiv:1810.04805; arranged as in Megatron-LM): masked tokens are
// predicted by a dense layer, GELU and LayerNorm before the tied decoder; whether the second
// segment follows the first by a pooler (tanh of a dense layer) of each sequence's first position
// and two classes. Under sequence parallelism a rank works on its own rows, and on the sequences
// whose first position is among them: neither needs a message.
#include "plan/chunk_programs.h"

namespace gptbench {

void ChunkPrograms::add_masked_head_buffers() {
  const Plan& plan = builder_.plan();
  const DType A = builder_.A();
  const DType S = builder_.S();
  MaskedHead& m = masked_;
  m.unit = plan.space.find_unit(UnitKind::head);
  m.dense_weight = builder_.tensor("mlm.dense.weight");
  m.dense_bias = builder_.tensor("mlm.dense.bias");
  m.ln_weight = builder_.tensor("mlm.ln.weight");
  m.ln_bias = builder_.tensor("mlm.ln.bias");
  m.logits_bias = builder_.tensor("mlm.bias");
  m.pooler_weight = builder_.tensor("pooler.weight");
  m.pooler_bias = builder_.tensor("pooler.bias");
  m.nsp_weight = builder_.tensor("nsp.weight");
  m.nsp_bias = builder_.tensor("nsp.bias");
  const auto temporary = [&](const char* what, DType dtype, int64_t columns, int64_t row_div) {
    return builder_.add_activation(prefix_ + what, Lifetime::program, dtype, columns, row_div);
  };
  m.dense = temporary("mlm_dense", A, s_.C, sp_);
  m.gelu = temporary("mlm_gelu", A, s_.C, sp_);
  m.ln = temporary("mlm_ln", A, s_.C, sp_);
  m.mean = temporary("mlm_ln_mean", S, 1, sp_);
  m.rstd = temporary("mlm_ln_rstd", S, 1, sp_);
  m.dln = temporary("dmlm_ln", A, s_.C, sp_);
  m.dgelu = temporary("dmlm_gelu", A, s_.C, sp_);
  if (sp_ > 1) {
    m.ln_full = temporary("mlm_ln_full", A, s_.C, 1);
    m.dln_full = temporary("dmlm_ln_full", A, s_.C, 1);
  }
  m.first = temporary("first", A, s_.C, s_.T);
  m.pooled = temporary("pooled", A, s_.C, s_.T);
  m.dpooled = temporary("dpooled", A, s_.C, s_.T);
  m.dfirst = temporary("dfirst", A, s_.C, s_.T);
  m.logits = temporary("sentence_logits", A, 2, s_.T);
  m.statistics = temporary("sentence_statistics", S, 3, s_.T);
}

void ChunkPrograms::emit_head_op(Op op) {
  op.region = Region::head_loss;
  builder_.emit(std::move(op));
}

void ChunkPrograms::emit_masked_transform() {
  const MaskedHead& m = masked_;
  const ops::Rows rows{builder_.plan().shape.L, sp_};
  const Operand weight = store_.weight(m.dense_weight), bias = store_.weight(m.dense_bias);
  emit_head_op(ops::linear_forward(rows, {s_.C, s_.C}, {ln_f_}, weight, bias, {m.dense}));
  emit_head_op(ops::activation_forward(ActivationKind::gelu, rows, s_.C, {m.dense}, {m.gelu}));
  builder_.emit(
      norm_forward(rows.layer, {m.gelu}, {m.ln_weight, m.ln_bias, m.mean, m.rstd}, {m.ln}));
}

// From the gradient at the decoder's input, in m.dln, to that at the final norm's output, to which
// the first positions' is added. Completes the gradient of the head's parameters.
void ChunkPrograms::emit_masked_transform_backward() {
  const MaskedHead& m = masked_;
  const ops::Rows rows{builder_.plan().shape.L, sp_};
  const Operand dgelu{m.dgelu};
  emit_head_op(ops::fill_zero(per_row(s_.C), dgelu, rows));
  emit_norm_backward_to(dgelu, rows.layer, {m.dln}, {m.gelu},
                        {m.ln_weight, m.ln_bias, m.mean, m.rstd});
  emit_head_op(ops::activation_backward(ActivationKind::gelu, rows, s_.C, dgelu, {m.dense}, dgelu));
  emit_head_op(ops::linear_backward_weight(rows, {s_.C, s_.C}, dgelu, {ln_f_},
                                           store_.gradient(m.dense_weight),
                                           store_.gradient(m.dense_bias)));
  // Its reduction travels while the gradient of the input is formed.
  store_.fold_gradient(m.unit);
  emit_head_op(ops::linear_backward_input(rows, {s_.C, s_.C}, dgelu, store_.weight(m.dense_weight),
                                          {dln_f_}));
  emit_of_sequences(ops::first_rows_backward({rows.layer}, s_.C, {m.dfirst}, {dln_f_}));
}

// An operation with a row for each sequence.
void ChunkPrograms::emit_of_sequences(Op op) {
  const Plan& plan = builder_.plan();
  op.sequence_rows = plan.shape.T;
  op.row_div = sp_;
  op.part = sp_ > 1 ? static_cast<int32_t>(plan.at.tensor) : 0;
  op.region = op.kind == OpKind::load_labels ? Region::data : Region::head_loss;
  builder_.emit(std::move(op));
}

// Forward and backward, to the gradient at the first positions.
void ChunkPrograms::emit_next_sentence() {
  const Plan& plan = builder_.plan();
  const MaskedHead& m = masked_;
  const int64_t L = plan.shape.L;
  const ops::Rows rows{L};
  const GemmSize pooler{s_.C, s_.C}, classes{s_.C, 2};
  const Operand pooler_weight = store_.weight(m.pooler_weight);
  const Operand pooler_bias = store_.weight(m.pooler_bias);
  const Operand nsp_weight = store_.weight(m.nsp_weight), nsp_bias = store_.weight(m.nsp_bias);
  const auto emit = [&](Op op) { emit_of_sequences(std::move(op)); };
  emit(ops::load_labels(L, {plan.labels}));
  emit(ops::first_rows_forward(rows, s_.C, {ln_f_}, {m.first}));
  emit(ops::linear_forward(rows, pooler, {m.first}, pooler_weight, pooler_bias, {m.pooled}));
  emit(ops::tanh_forward(rows, s_.C, {m.pooled}, {m.pooled}));
  emit(ops::linear_forward(rows, classes, {m.pooled}, nsp_weight, nsp_bias, {m.logits}));
  const int64_t sequences = plan.micro_batch_rows / plan.shape.T;
  Loss loss;
  loss.size = {2, 2, 0, 1.0 / static_cast<double>(plan.config.batch.global_batch_size)};
  loss.logits = {m.logits};
  loss.targets = {plan.labels};
  loss.statistics = {{m.statistics, 0}, {m.statistics, sequences}, {m.statistics, 2 * sequences}};
  // Without sequence parallelism all tensor-parallel ranks see all sequences: one counts them.
  loss.sum = sp_ > 1 || plan.at.tensor == 0 ? Scalar::sentence_loss_sum : Scalar::unused;
  emit(loss_statistics(loss));
  emit(loss_finish(loss));
  emit(ops::linear_backward_weight(rows, classes, {m.logits}, {m.pooled},
                                   store_.gradient(m.nsp_weight), store_.gradient(m.nsp_bias)));
  emit(ops::linear_backward_input(rows, classes, {m.logits}, nsp_weight, {m.dpooled}));
  emit(ops::tanh_backward(rows, s_.C, {m.dpooled}, {m.pooled}, {m.dpooled}));
  emit(ops::linear_backward_weight(rows, pooler, {m.dpooled}, {m.first},
                                   store_.gradient(m.pooler_weight),
                                   store_.gradient(m.pooler_bias)));
  emit(ops::linear_backward_input(rows, pooler, {m.dpooled}, pooler_weight, {m.dfirst}));
}

}  // namespace gptbench
