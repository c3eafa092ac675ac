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

// A linear layer on this rank's rows, or on a row a sequence.
Op ChunkPrograms::head_linear(OpKind kind, std::vector<Operand> reads, std::vector<Operand> writes,
                              int64_t K, int64_t N) const {
  Op op = row_op(kind, builder_.plan().shape.L, N, std::move(reads), std::move(writes), sp_);
  op.K = K;
  op.flops_a_row = 2.0 * static_cast<double>(K) * static_cast<double>(N);
  return op;
}

void ChunkPrograms::emit_masked_transform() {
  const MaskedHead& m = masked_;
  const int64_t L = builder_.plan().shape.L;
  emit_head_op(head_linear(OpKind::linear_forward,
                           {{ln_f_}, store_.weight(m.dense_weight), store_.weight(m.dense_bias)},
                           {{m.dense}}, s_.C, s_.C));
  emit_head_op(row_op(OpKind::gelu_forward, L, s_.C, {{m.dense}}, {{m.gelu}}, sp_));
  emit_norm_forward(L, {m.gelu}, m.ln_weight, m.ln_bias, {m.ln}, m.mean, m.rstd);
}

// From the gradient at the decoder's input, in m.dln, to that at the final norm's output, to which
// the first positions' is added. Completes the gradient of the head's parameters.
void ChunkPrograms::emit_masked_transform_backward() {
  const MaskedHead& m = masked_;
  const int64_t L = builder_.plan().shape.L;
  const Operand dgelu{m.dgelu};
  emit_head_op(row_op(OpKind::fill_zero, L, s_.C, {}, {dgelu}, sp_));
  emit_norm_backward_to(dgelu, L, {m.dln}, {m.gelu}, m.ln_weight, m.ln_bias, m.mean, m.rstd);
  emit_head_op(row_op(OpKind::gelu_backward, L, s_.C, {dgelu, {m.dense}}, {dgelu}, sp_));
  emit_head_op(head_linear(OpKind::linear_backward_weight, {dgelu, {ln_f_}},
                           {store_.gradient(m.dense_weight), store_.gradient(m.dense_bias)}, s_.C,
                           s_.C));
  // Its reduction travels while the gradient of the input is formed.
  store_.fold_gradient(m.unit);
  emit_head_op(head_linear(OpKind::linear_backward_input, {dgelu, store_.weight(m.dense_weight)},
                           {{dln_f_}}, s_.C, s_.C));
  emit_of_sequences(row_op(OpKind::first_rows_backward, L, s_.C, {{m.dfirst}}, {{dln_f_}}));
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
  const auto emit = [&](Op op) { emit_of_sequences(std::move(op)); };
  emit(row_op(OpKind::load_labels, L, 1, {}, {{plan.labels}}));
  emit(row_op(OpKind::first_rows_forward, L, s_.C, {{ln_f_}}, {{m.first}}));
  emit(head_linear(OpKind::linear_forward,
                   {{m.first}, store_.weight(m.pooler_weight), store_.weight(m.pooler_bias)},
                   {{m.pooled}}, s_.C, s_.C));
  emit(row_op(OpKind::tanh_forward, L, s_.C, {{m.pooled}}, {{m.pooled}}));
  emit(head_linear(OpKind::linear_forward,
                   {{m.pooled}, store_.weight(m.nsp_weight), store_.weight(m.nsp_bias)},
                   {{m.logits}}, s_.C, 2));
  const int64_t sequences = plan.micro_batch_rows / plan.shape.T;
  Loss loss;
  loss.logits = {m.logits};
  loss.targets = {plan.labels};
  loss.row_max = {m.statistics, 0};
  loss.row_sum = {m.statistics, sequences};
  loss.target_logit = {m.statistics, 2 * sequences};
  // Without sequence parallelism all tensor-parallel ranks see all sequences: one counts them.
  loss.sum = sp_ > 1 || plan.at.tensor == 0 ? Scalar::sentence_loss_sum : Scalar::unused;
  loss.row_weight = 1.0 / static_cast<double>(plan.config.batch.global_batch_size);
  emit(loss_statistics(loss, 2, 2, 0));
  emit(loss_finish(loss, 2, 2, 0));
  emit(head_linear(OpKind::linear_backward_weight, {{m.logits}, {m.pooled}},
                   {store_.gradient(m.nsp_weight), store_.gradient(m.nsp_bias)}, s_.C, 2));
  emit(head_linear(OpKind::linear_backward_input, {{m.logits}, store_.weight(m.nsp_weight)},
                   {{m.dpooled}}, s_.C, 2));
  emit(row_op(OpKind::tanh_backward, L, s_.C, {{m.dpooled}, {m.pooled}}, {{m.dpooled}}));
  emit(head_linear(OpKind::linear_backward_weight, {{m.dpooled}, {m.first}},
                   {store_.gradient(m.pooler_weight), store_.gradient(m.pooler_bias)}, s_.C, s_.C));
  emit(head_linear(OpKind::linear_backward_input, {{m.dpooled}, store_.weight(m.pooler_weight)},
                   {{m.dfirst}}, s_.C, s_.C));
}

}  // namespace gptbench
