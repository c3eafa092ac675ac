#include "plan/language_model_head.h"

#include <algorithm>

#include "base/units.h"

namespace gptbench {
namespace {

// Rows per chunk: a multiple of `step` whose logits fit into head_bytes, or `step` rows.
int64_t chunk_rows(const StageBuilder& stage) {
  constexpr int64_t step = 1024;
  const DeviceTraits& device = stage.plan.device;
  const int64_t row_bytes = stage.s.V * size_of(stage.builder.A());
  const int64_t fitting = std::max(device.head_bytes / row_bytes / step, int64_t{1}) * step;
  return std::min({device.head_rows, fitting, stage.plan.micro_batches.rows});
}

}  // namespace

LanguageModelHead::LanguageModelHead(const StageBuilder& stage, const ResidualStream& stream)
    : stage_(stage),
      stream_(stream),
      rows_(chunk_rows(stage)),
      norm_unit_(stage.plan.space.find_unit(UnitKind::final_norm)),
      norm_(stage.find_norm("ln_f")) {
  const DType A = stage.builder.A(), S = stage.builder.S();
  const ModelShape& s = stage.s;
  const auto block = [&](const char* what, DType dtype, int64_t elements) {
    return stage.builder.add_buffer(stage.prefix + what, MemoryClass::activations,
                                    Lifetime::program, dtype, elements);
  };
  if (s.family.norm == NormKind::layernorm) norm_.mean = stage.kept("ln_f_mean", S, 1, stage.sp);
  norm_.rstd = stage.kept("ln_f_rstd", S, 1, stage.sp);
  dln_f_ = stage.kept("dln_f", A, s.C, stage.sp);
  ln_f_ = stage.temporary("ln_f", A, s.C, stage.sp);
  decoder_ = {ln_f_, dln_f_};
  if (stage.sp > 1) {
    decoder_.x_full = stage.temporary("ln_f_full", A, s.C);
    decoder_.dx_full = stage.temporary("dln_f_full", A, s.C);
  }
  logits_ = block("logits", A, checked_product(rows_, s.V, "logits"));
  statistics_ = block("loss_statistics", S, 3 * rows_);
  const int64_t ranks = stage.plan.grid.tensor;
  if (ranks > 1) all_statistics_ = block("all_loss_statistics", S, 3 * rows_ * ranks);
  const bool tied = s.family.shares_embedding();
  table_ = stage.builder.tensor(tied ? "wte" : "lm_head.weight");
  unit_ = stage.plan.space.find_unit(tied ? UnitKind::token_embedding : UnitKind::head);
  if (s.family.head != HeadKind::masked) return;
  masked_.emplace(stage, ln_f_, dln_f_);
  decoder_ = masked_->decoder_input();
}

void LanguageModelHead::gather() const {
  stage_.weights.gather(norm_unit_);
  stage_.weights.gather(unit_);
  if (masked_) stage_.weights.gather(masked_->unit());
}

void LanguageModelHead::emit_forward() const {
  const Plan& plan = stage_.plan;
  const int64_t L = plan.shape.L;
  if (!stage_.chunk.has_embedding)
    stage_.emit(ops::load_tokens(L, {plan.buffer_index.tokens}, {plan.buffer_index.targets},
                                 {plan.buffer_index.token_types}));
  gather();
  stage_.gradients.open(unit_);
  if (masked_) stage_.gradients.open(masked_->unit());
  stage_.emit(stage_.norm_forward(L, {stream_.x_end}, norm_, {ln_f_}));
  if (masked_) masked_->emit_transform();
  const Operand dpart{decoder_.dx};
  const Operand x = stage_.to_full(L, {decoder_.x}, decoder_.x_full);
  const Operand dx = stage_.sp > 1 ? Operand{decoder_.dx_full} : dpart;
  const int64_t blocks = ceil_div(plan.micro_batches.rows, rows_);
  // Converted before the loop, where they are.
  stage_.weights.of(table_);
  if (masked_) stage_.weights.of(masked_->logits_bias());
  if (blocks > 1) {
    stage_.builder.begin_loop(blocks - 1, rows_);
    emit_rows(0, x, dx);
    stage_.builder.end_loop();
  }
  emit_rows((blocks - 1) * rows_, x, dx);
  stage_.reduce(L, dx, dpart.buffer);
  if (masked_) masked_->emit_next_sentence();
  // The next operations do not touch the summed array, but may reuse its memory.
  if (stage_.sp > 1) stage_.emit(ops::join(dpart, dx));
  if (masked_) masked_->emit_transform_backward();
}

// The block of rows from `first`, the last one, or the first one of a loop over the others.
void LanguageModelHead::emit_rows(int64_t first, Operand x, Operand dx) const {
  const Plan& plan = stage_.plan;
  const ModelShape& s = stage_.s;
  const int64_t L = plan.shape.L, ranks = plan.grid.tensor;
  const auto emit = [&](Op op) {
    if (op.row_count > 0) {
      op.row_begin = first;
      op.row_count = rows_;
    }
    stage_.emit_in(Region::head_loss, op);
  };
  const GemmSize gemm{s.C, s.V, false, stage_.gradients.sum_of(table_)};
  x = at_row({x.buffer, x.offset, s.C}, first);
  dx = at_row({dx.buffer, dx.offset, s.C}, first);
  const Operand logits{logits_}, targets{plan.buffer_index.targets, first, 1};
  const ops::LossStatistics statistics{
      {statistics_, 0}, {statistics_, rows_}, {statistics_, 2 * rows_}};
  const int64_t first_token = plan.at.tensor * s.V;
  LossSize size{s.V, std::clamp<int64_t>(s.V_valid - first_token, 0, s.V), first_token, 1.0};
  ops::LossScalars scalars;
  scalars.loss_scale = {plan.buffer_index.loss_scale};
  if (plan.buffer_index.lengths >= 0)  // as many targets as this step's lengths leave
    scalars.row_weight = plan.scalar(Scalar::target_weight);
  else
    size.row_weight =
        1.0 / static_cast<double>(plan.config.batch.global_batch_size * plan.shape.targets());
  // All tensor-parallel ranks know the loss; one adds it up.
  scalars.loss_sum = plan.scalar(plan.at.tensor == 0 ? Scalar::loss_sum : Scalar::unused);

  const int logits_bias = masked_ ? masked_->logits_bias() : -1;
  const Operand table = stage_.weights.of(table_), bias = stage_.weights.of(logits_bias);
  emit(ops::linear_forward({L}, gemm, x, table, bias, logits));
  emit(ops::cross_entropy_statistics(L, size, logits, targets, statistics));
  if (ranks > 1) {
    stage_.emit(ops::all_gather({QueueId::tensor, Axis::tensor}, flat(3 * rows_ * ranks),
                                size_of(stage_.builder.S()), {statistics_}, {all_statistics_}));
    emit(ops::cross_entropy_combine(L, {3 * rows_, rows_}, {all_statistics_}, statistics));
  }
  emit(ops::cross_entropy_finish(L, size, logits, targets, statistics, scalars));
  emit(ops::linear_backward_weight({L}, gemm, logits, x, stage_.gradients.of(table_),
                                   stage_.gradients.of(logits_bias)));
  // Its reduction travels while the gradient of the input is formed.
  const bool complete = first + rows_ >= plan.micro_batches.rows;
  if (complete && !stage_.shares_table()) stage_.gradients.fold(unit_);
  emit(ops::linear_backward_input({L}, gemm, logits, table, dx));
}

void LanguageModelHead::emit_backward(const Pass& pass, Operand dx_sums) const {
  const int64_t L = stage_.plan.shape.L;
  if (pass.inputs) {
    stage_.gradients.open(norm_unit_);
    const Operand dx{stream_.dx};
    stage_.emit_in(Region::layernorm, ops::fill_zero(per_row(stage_.s.C), dx, {L, stage_.sp}));
    stage_.emit_norm_backward(L, {dln_f_}, {stream_.x_end}, norm_, dx, dx_sums);
    stage_.gradients.fold(norm_unit_);
  }
  if (!pass.weights) return;
  stage_.gradients.reduce(norm_unit_, pass.last);
  // The forward program has folded those of the head.
  if (masked_) stage_.gradients.reduce(masked_->unit(), pass.last);
  if (!stage_.shares_table()) stage_.gradients.reduce(unit_, pass.last);
}

}  // namespace gptbench
