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
  builder_.emit(ops::load_tokens(layer, {plan.tokens}, {plan.targets}, {plan.token_types}));
}

// Every stage has layers whose attention asks for them. The virtual stages of a rank share them:
// the first to go forward is the last to go back.
void ChunkPrograms::emit_load_lengths() {
  const Plan& plan = builder_.plan();
  if (plan.lengths < 0 || index_ > 0) return;
  Op op = ops::load_lengths(chunk_.first_layer, {plan.lengths});
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
  ops::EmbeddingTables tables;
  tables.token = store_.weight(wte_);
  if (adds) tables.position = store_.weight(wpe_);
  if (adds) tables.type = store_.weight(wtt_);
  builder_.emit(ops::embedding_forward(
      s_.C, {plan.tokens}, adds ? Operand{plan.token_types} : Operand{}, tables, partial));
  reduce(-1, partial, x0.buffer);
  if (plan.config.model.dropout <= 0.0) return;
  builder_.emit(ops::residual_forward({-1, sp_}, embedding_site, s_.C, {}, x0, x0));
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
  builder_.emit(ops::embedding_backward(
      s_.C, dx, {plan.tokens}, {plan.token_types},
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
  builder_.emit(norm_forward(L, {x_end_}, final_norm(), {ln_f_}));
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
  if (sp_ > 1) builder_.emit(ops::join(dpart, dx));
  if (masked) emit_masked_transform_backward();
}

Op ChunkPrograms::loss_statistics(const Loss& loss) const {
  return ops::cross_entropy_statistics(builder_.plan().shape.L, loss.size, loss.logits,
                                       loss.targets, loss.statistics);
}

Op ChunkPrograms::loss_finish(const Loss& loss) const {
  const Plan& plan = builder_.plan();
  return ops::cross_entropy_finish(
      plan.shape.L, loss.size, loss.logits, loss.targets, loss.statistics,
      {{plan.loss_scale}, loss.weight, {plan.scalars, static_cast<int64_t>(loss.sum)}});
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
  const GemmSize gemm{s_.C, s_.V};
  x = at_row({x.buffer, x.offset, s_.C}, first);
  dx = at_row({dx.buffer, dx.offset, s_.C}, first);
  const Operand logits{logits_};
  Loss loss;
  loss.logits = logits;
  loss.targets = {plan.targets, first, 1};
  loss.statistics = {{statistics_, 0}, {statistics_, rows}, {statistics_, 2 * rows}};
  const int64_t first_token = plan.at.tensor * s_.V;
  loss.size = {s_.V, std::clamp<int64_t>(s_.V_valid - first_token, 0, s_.V), first_token};
  // All tensor-parallel ranks know the loss; one adds it up.
  loss.sum = plan.at.tensor == 0 ? Scalar::loss_sum : Scalar::unused;
  if (plan.lengths >= 0) {  // as many targets as this step's lengths leave
    loss.size.row_weight = 1.0;
    loss.weight = {plan.scalars, static_cast<int64_t>(Scalar::target_weight)};
  } else {
    loss.size.row_weight =
        1.0 / static_cast<double>(plan.config.batch.global_batch_size * plan.shape.targets());
  }

  const Operand table = store_.weight(head_table_), bias = store_.weight(masked_.logits_bias);
  emit(ops::linear_forward({L}, gemm, x, table, bias, logits));
  emit(loss_statistics(loss));
  if (tp_ > 1) {
    builder_.emit(ops::all_gather({QueueId::tensor, Axis::tensor}, flat(3 * rows * tp_),
                                  size_of(builder_.S()), {statistics_}, {all_statistics_}));
    emit(ops::cross_entropy_combine(L, {3 * rows, rows}, {all_statistics_}, loss.statistics));
  }
  emit(loss_finish(loss));
  emit(ops::linear_backward_weight({L}, gemm, logits, x, store_.gradient(head_table_),
                                   store_.gradient(masked_.logits_bias)));
  // Its reduction travels while the gradient of the input is formed.
  const bool complete = first + rows >= plan.micro_batch_rows;
  if (complete && !shares_table()) store_.fold_gradient(head_unit_);
  emit(ops::linear_backward_input({L}, gemm, logits, store_.weight(head_table_), dx));
}

void ChunkPrograms::emit_head_backward(Pass pass) {
  const Plan& plan = builder_.plan();
  const int64_t L = plan.shape.L;
  const int norm = plan.space.find_unit(UnitKind::final_norm);
  if (pass.inputs) {
    store_.open_gradient(norm);
    Op zero = ops::fill_zero(per_row(s_.C), {dx_}, {L, sp_});
    zero.region = Region::layernorm;
    builder_.emit(zero);
    emit_norm_backward(L, {dln_f_}, {x_end_}, final_norm());
    store_.fold_gradient(norm);
  }
  if (!pass.weights) return;
  store_.reduce_gradient(norm, pass.last);
  // The forward program has folded those of the head.
  store_.reduce_gradient(masked_.unit, pass.last);
  if (!shares_table()) store_.reduce_gradient(head_unit_, pass.last);
}

}  // namespace gptbench
