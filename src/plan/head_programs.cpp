// The ends of the model: embedding and output head, which share one table where it is tied.
#include <algorithm>

#include "base/units.h"
#include "plan/chunk_programs.h"

namespace gptbench {

void ChunkPrograms::add_head_buffers() {
  const Plan& plan = builder_.plan();
  const DType A = builder_.A();
  const DType S = builder_.S();
  const int64_t rows = std::min(head_chunk_rows, plan.micro_batch_rows);
  const auto kept = [&](const char* what, DType dtype, int64_t columns) {
    return builder_.add_activation(prefix_ + what, Lifetime::micro_batch, dtype, columns, sp_,
                                   slots_);
  };
  const auto temporary = [&](const char* what, DType dtype, int64_t elements) {
    return builder_.add_buffer(prefix_ + what, MemoryClass::activations, Lifetime::program, dtype,
                               elements);
  };
  if (family_.norm == NormKind::layernorm) ln_f_mean_ = kept("ln_f_mean", S, 1);
  ln_f_rstd_ = kept("ln_f_rstd", S, 1);
  dln_f_ = kept("dln_f", A, s_.C);
  ln_f_ = builder_.add_activation(prefix_ + "ln_f", Lifetime::program, A, s_.C, sp_);
  if (sp_ > 1) {
    ln_f_full_ = builder_.add_activation(prefix_ + "ln_f_full", Lifetime::program, A, s_.C);
    dln_f_full_ = builder_.add_activation(prefix_ + "dln_f_full", Lifetime::program, A, s_.C);
  }
  logits_ = temporary("logits", A, checked_product(rows, s_.V, "logits"));
  statistics_ = temporary("loss_statistics", S, 3 * rows);
  if (tp_ > 1) all_statistics_ = temporary("all_loss_statistics", S, 3 * rows * tp_);
  ln_f_weight_ = builder_.tensor("ln_f.weight");
  ln_f_bias_ = builder_.find_tensor("ln_f.bias");
  const bool shares = family_.shares_embedding();
  head_table_ = builder_.tensor(shares ? "wte" : "lm_head.weight");
  head_unit_ = plan.space.find_unit(shares ? UnitKind::token_embedding : UnitKind::head);
  if (family_.head == HeadKind::masked) add_masked_head_buffers();
}

void ChunkPrograms::emit_load_tokens(int64_t layer) {
  const Plan& plan = builder_.plan();
  builder_.emit(row_op(OpKind::load_tokens, layer, 1, {},
                       {{plan.tokens}, {plan.targets}, {plan.token_types}}));
}

// Every stage has layers whose attention asks for them. The virtual stages of a rank share them:
// the first to go forward is the last to go back.
void ChunkPrograms::emit_load_lengths() {
  const Plan& plan = builder_.plan();
  if (plan.lengths < 0 || index_ > 0) return;
  Op op = row_op(OpKind::load_lengths, chunk_.first_layer, 1, {}, {{plan.lengths}});
  op.sequence_rows = plan.shape.T;
  builder_.emit(op);
}

void ChunkPrograms::emit_embedding_forward() {
  const Plan& plan = builder_.plan();
  wte_ = builder_.tensor("wte");
  wpe_ = builder_.find_tensor("wpe");
  wtt_ = builder_.find_tensor("wtt");
  emit_load_tokens(-1);
  const Operand x0 = input_of(chunk_.first_layer);
  // Each rank looks up the tokens of its part of the vocabulary; one adds positions and types.
  const Operand partial = sp_ > 1 ? Operand{branch_} : x0;
  const bool adds = plan.at.tensor == 0;
  builder_.emit(row_op(OpKind::embedding_forward, -1, s_.C,
                       {{plan.tokens},
                        store_.weight(wte_),
                        adds ? store_.weight(wpe_) : Operand{},
                        adds ? Operand{plan.token_types} : Operand{},
                        adds ? store_.weight(wtt_) : Operand{}},
                       {partial}));
  reduce(-1, partial, x0.buffer);
  if (plan.config.model.dropout <= 0.0) return;
  Op op = row_op(OpKind::residual_forward, -1, s_.C, {{}, x0}, {x0}, sp_);
  op.site = embedding_site;
  builder_.emit(op);
}

void ChunkPrograms::emit_embedding_backward(Pass pass) {
  const Plan& plan = builder_.plan();
  const int tokens = plan.space.find_unit(UnitKind::token_embedding);
  const int positions = plan.space.find_unit(UnitKind::position_embedding);
  if (!pass.weights) return;
  if (!shares_table()) store_.open_gradient(tokens);  // else the head has opened it
  store_.open_gradient(positions);
  const Operand dx =
      to_full(-1, emit_dropout_backward(-1, embedding_site, {dx_}, ddropped_), dfull_);
  builder_.emit(row_op(OpKind::embedding_backward, -1, s_.C,
                       {dx, {plan.tokens}, {plan.token_types}},
                       {store_.gradient(wte_), store_.gradient(wpe_), store_.gradient(wtt_)}));
  store_.close_gradient(positions, pass.last);
  store_.close_gradient(tokens, pass.last);
}

// The head's loss and its gradient with respect to the final norm's output, some rows at a time.
void ChunkPrograms::emit_head_forward() {
  const Plan& plan = builder_.plan();
  const int64_t L = plan.shape.L;
  const bool masked = family_.head == HeadKind::masked;
  if (!chunk_.has_embedding) emit_load_tokens(L);
  gather_head();
  store_.open_gradient(head_unit_);
  store_.open_gradient(masked_.unit);
  emit_norm_forward(L, {x_end_}, ln_f_weight_, ln_f_bias_, {ln_f_}, ln_f_mean_, ln_f_rstd_);
  if (masked) emit_masked_transform();
  // What the logits are formed of: this rank's rows and all rows, and their gradients.
  const Operand part{masked ? masked_.ln : ln_f_}, dpart{masked ? masked_.dln : dln_f_};
  const Operand x = to_full(L, part, masked ? masked_.ln_full : ln_f_full_);
  const Operand dx = sp_ > 1 ? Operand{masked ? masked_.dln_full : dln_f_full_} : dpart;
  const int64_t rows = std::min(head_chunk_rows, plan.micro_batch_rows);
  const int64_t blocks = ceil_div(plan.micro_batch_rows, rows);
  // Converted before the loop, where they are.
  store_.weight(head_table_);
  store_.weight(masked_.logits_bias);
  if (blocks > 1) {
    builder_.begin_loop(blocks - 1, rows);
    emit_head_rows(0, x, dx);
    builder_.end_loop();
  }
  emit_head_rows((blocks - 1) * rows, x, dx);
  reduce(L, dx, dpart.buffer);
  if (masked) emit_next_sentence();
  // What comes next does not touch what is summed, but may use its memory again.
  if (sp_ > 1) builder_.emit(flat_op(OpKind::join, 0, {dpart, dx}, {}));
  if (masked) emit_masked_transform_backward();
}

Op ChunkPrograms::loss_statistics(const Loss& loss, int64_t columns, int64_t valid,
                                  int64_t first_token) const {
  Op op = row_op(OpKind::cross_entropy_statistics, builder_.plan().shape.L, columns,
                 {loss.logits, loss.targets}, {loss.row_max, loss.row_sum, loss.target_logit});
  op.K = first_token;
  op.elements = valid;
  return op;
}

Op ChunkPrograms::loss_finish(const Loss& loss, int64_t columns, int64_t valid,
                              int64_t first_token) const {
  const Plan& plan = builder_.plan();
  Op op = row_op(
      OpKind::cross_entropy_finish, plan.shape.L, columns,
      {loss.row_max, loss.row_sum, loss.target_logit, loss.targets, {plan.loss_scale}, loss.weight},
      {{plan.scalars, static_cast<int64_t>(loss.sum)}, loss.logits});
  op.K = first_token;
  op.elements = valid;
  op.row_weight = loss.row_weight;
  return op;
}

// The block of rows from `first`, the last one, or the first one of a loop over the others.
void ChunkPrograms::emit_head_rows(int64_t first, Operand x, Operand dx) {
  const Plan& plan = builder_.plan();
  const int64_t L = plan.shape.L;
  const int64_t rows = std::min(head_chunk_rows, plan.micro_batch_rows);
  const auto emit = [&](Op op) {
    op.region = Region::head_loss;
    if (op.row_count > 0) {
      op.row_begin = first;
      op.row_count = rows;
    }
    builder_.emit(std::move(op));
  };
  const auto linear = [&](OpKind kind, std::vector<Operand> reads, std::vector<Operand> writes) {
    Op op = row_op(kind, L, s_.V, std::move(reads), std::move(writes));
    op.K = s_.C;
    op.flops_a_row = 2.0 * static_cast<double>(s_.C) * static_cast<double>(s_.V);
    emit(op);
  };
  x = at_row({x.buffer, x.offset, s_.C}, first);
  dx = at_row({dx.buffer, dx.offset, s_.C}, first);
  const Operand logits{logits_};
  Loss loss;
  loss.logits = logits;
  loss.targets = {plan.targets, first, 1};
  loss.row_max = {statistics_, 0};
  loss.row_sum = {statistics_, rows};
  loss.target_logit = {statistics_, 2 * rows};
  // All tensor-parallel ranks know the loss; one adds it up.
  loss.sum = plan.at.tensor == 0 ? Scalar::loss_sum : Scalar::unused;
  if (plan.lengths >= 0) {  // as many targets as this step's lengths leave
    loss.row_weight = 1.0;
    loss.weight = {plan.scalars, static_cast<int64_t>(Scalar::target_weight)};
  } else {
    loss.row_weight =
        1.0 / static_cast<double>(plan.config.batch.global_batch_size * plan.shape.targets());
  }
  const int64_t first_token = plan.at.tensor * s_.V;
  const int64_t valid = std::clamp<int64_t>(s_.V_valid - first_token, 0, s_.V);

  linear(OpKind::linear_forward,
         {x, store_.weight(head_table_), store_.weight(masked_.logits_bias)}, {logits});
  emit(loss_statistics(loss, s_.V, valid, first_token));
  if (tp_ > 1) {
    builder_.emit(flat_message(OpKind::all_gather, QueueId::tensor, Axis::tensor, 3 * rows * tp_,
                               size_of(builder_.S()), {statistics_}, {all_statistics_}));
    Op combine = row_op(OpKind::cross_entropy_combine, L, s_.V, {{all_statistics_}},
                        {loss.row_max, loss.row_sum, loss.target_logit});
    combine.elements = 3 * rows;  // from one rank's statistics to the next
    combine.K = rows;             // from maximum to sum to target
    emit(combine);
  }
  emit(loss_finish(loss, s_.V, valid, first_token));
  linear(OpKind::linear_backward_weight, {logits, x},
         {store_.gradient(head_table_), store_.gradient(masked_.logits_bias)});
  // Its reduction travels while the gradient of the input is formed.
  const bool complete = first + rows >= plan.micro_batch_rows;
  if (complete && !shares_table()) store_.fold_gradient(head_unit_);
  linear(OpKind::linear_backward_input, {logits, store_.weight(head_table_)}, {dx});
}

void ChunkPrograms::emit_head_backward(Pass pass) {
  const Plan& plan = builder_.plan();
  const int64_t L = plan.shape.L;
  const int norm = plan.space.find_unit(UnitKind::final_norm);
  if (pass.inputs) {
    store_.open_gradient(norm);
    Op zero = row_op(OpKind::fill_zero, L, s_.C, {}, {{dx_}}, sp_);
    zero.region = Region::layernorm;
    builder_.emit(zero);
    emit_norm_backward(L, {dln_f_}, {x_end_}, ln_f_weight_, ln_f_bias_, ln_f_mean_, ln_f_rstd_);
    store_.fold_gradient(norm);
  }
  if (!pass.weights) return;
  store_.reduce_gradient(norm, pass.last);
  // The forward program has folded those of the head.
  store_.reduce_gradient(masked_.unit, pass.last);
  if (!shares_table()) store_.reduce_gradient(head_unit_, pass.last);
}

}  // namespace gptbench
