#include "plan/stage_builder.h"

#include <utility>

namespace gptbench {

StageBuilder::StageBuilder(PlanBuilder& plan_builder, Weights& rank_weights,
                           Gradients& rank_gradients, const Fp8State* fp8_state,
                           int32_t chunk_index, bool splits_gradients)
    : builder(plan_builder),
      weights(rank_weights),
      gradients(rank_gradients),
      fp8(fp8_state),
      plan(plan_builder.plan()),
      s(plan.local),
      chunk(plan.chunks[static_cast<size_t>(chunk_index)]),
      index(chunk_index),
      splits(splits_gradients),
      recompute(plan.config.memory.activation_checkpointing) {
  if (plan.config.parallel.sequence_parallel) sp = plan.grid.tensor;
  if (plan.chunks.size() > 1) prefix = "v" + std::to_string(chunk.virtual_stage) + ".";
}

int StageBuilder::temporary(const std::string& what, DType dtype, int64_t columns,
                            int64_t row_div) const {
  return builder.add_activation(prefix + what, Lifetime::program, dtype, columns, row_div);
}

int StageBuilder::kept(const std::string& what, DType dtype, int64_t columns,
                       int64_t row_div) const {
  return builder.add_activation(prefix + what, Lifetime::micro_batch, dtype, columns, row_div);
}

void StageBuilder::emit(Op op, bool repeats) const {
  op.recompute = repeats;
  builder.emit(std::move(op));
}

void StageBuilder::emit_in(Region region, Op op) const {
  op.region = region;
  builder.emit(std::move(op));
}

Operand StageBuilder::to_full(int64_t l, Operand part, int full, DType dtype) const {
  if (sp == 1) return part;
  emit(ops::all_gather({QueueId::tensor, Axis::tensor}, per_row(s.C), size_of(dtype), part, {full},
                       {l}));
  return {full};
}

Operand StageBuilder::reduce(int64_t l, Operand partial, int part) const {
  if (plan.grid.tensor == 1) return partial;
  const ops::Route route{QueueId::tensor, Axis::tensor};
  const int64_t bytes = size_of(builder.A());
  if (sp == 1) {
    emit(ops::all_reduce(route, per_row(s.C), bytes, partial, {l}));
    return partial;
  }
  emit(ops::reduce_scatter(route, per_row(s.C), bytes, partial, {part}, {l}));
  return {part};
}

Operand StageBuilder::dropout_backward(int64_t l, int32_t site, Operand dy, int buffer) const {
  if (plan.config.model.dropout <= 0.0) return dy;
  emit(ops::dropout_backward({l, sp}, site, s.C, dy, {buffer}));
  return {buffer};
}

Norm StageBuilder::find_norm(const std::string& name) const {
  return {builder.tensor(name + ".weight"), builder.find_tensor(name + ".bias")};
}

Op StageBuilder::norm_forward(int64_t l, Operand x, const Norm& norm, Operand y) const {
  const Operand weight = weights.of(norm.weight), bias = weights.of(norm.bias);
  return ops::norm_forward(s.family.norm, {l, sp}, s.C, x, {weight, bias, {norm.mean}, {norm.rstd}},
                           y);
}

void StageBuilder::emit_norm_backward(int64_t l, Operand dy, Operand x, const Norm& norm,
                                      Operand dx, Operand dx_sums) const {
  emit(ops::norm_backward(s.family.norm, {l, sp}, s.C, dy, x,
                          {weights.of(norm.weight), {}, {norm.mean}, {norm.rstd}},
                          {dx, gradients.of(norm.weight), gradients.of(norm.bias), dx_sums}));
}

ResidualStream::ResidualStream(const StageBuilder& stage) {
  const DType A = stage.builder.A();
  const ModelShape& s = stage.s;
  const auto whole = [&](const char* what) { return stage.temporary(what, A, s.C); };
  const auto part = [&](const char* what) { return stage.temporary(what, A, s.C, stage.sp); };
  branch = whole("branch");
  dx = stage.plan.grid.pipeline > 1 ? stage.kept("dx", A, s.C, stage.sp) : part("dx");
  dbranch = whole("dbranch");
  dattention = stage.temporary("dattention", A, s.H * s.D);
  if (s.fc() != s.F) dactivation = stage.temporary("dactivation", A, s.F);
  if (stage.plan.config.model.dropout > 0.0) ddropped = part("ddropped");
  if (stage.sp > 1) {
    branch_part = part("branch_part");
    full = whole("full");
    dbranch_part = part("dbranch_part");
    dfull = whole("dfull");
  }
  x_end = stage.kept("x_end", A, s.C, stage.sp);
}

}  // namespace gptbench
