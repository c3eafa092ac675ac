#include "plan/fuse.h"

namespace gptbench {
namespace {

bool is_same(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.row_stride == b.row_stride;
}

bool has_same_rows(const Op& a, const Op& b) {
  return a.row_begin == b.row_begin && a.row_count == b.row_count && a.row_div == b.row_div &&
         a.sequence_rows == b.sequence_rows && a.part == b.part;
}

}  // namespace

bool fuse_activation(const Plan& plan, Op& linear, const Op& activation) {
  const bool forward =
      linear.kind == OpKind::linear_forward && activation.kind == OpKind::gelu_forward;
  const bool backward =
      linear.kind == OpKind::linear_backward_input && activation.kind == OpKind::gelu_backward;
  if ((!forward && !backward) || activation.has(Slot::fp8_scale)) return false;
  const auto type_of = [&](const Operand& operand) {
    return plan.buffers[static_cast<size_t>(operand.buffer)].dtype;
  };
  const Slot factor = forward ? Slot::x : Slot::dy;
  const Operand& result = linear[forward ? Slot::y : Slot::dx];
  const GemmSize& size = linear.as<GemmSize>();
  if (!is_same(result, activation[factor]) || type_of(linear[factor]) != type_of(result) ||
      !has_same_rows(linear, activation) || linear.recompute != activation.recompute ||
      activation.as<RowSize>().columns != (forward ? size.N : size.K))
    return false;
  if (forward) {
    linear.kind = OpKind::linear_gelu_forward;
    linear.operands.set(Slot::activation, activation[Slot::y]);
    return true;
  }
  if (!is_same(result, activation[Slot::dx])) return false;
  linear.kind = OpKind::linear_gelu_backward_input;
  linear.operands.set(Slot::pre, activation[Slot::x]);
  linear.operands.set(Slot::dbias, activation[Slot::column_sums]);
  return true;
}

bool fuse_loss(const Plan& plan, Op& statistics, const Op& finish) {
  if (!plan.device.single_pass || statistics.kind != OpKind::cross_entropy_statistics ||
      finish.kind != OpKind::cross_entropy_finish ||
      !is_same(statistics[Slot::logits], finish[Slot::logits]) ||
      !has_same_rows(statistics, finish))
    return false;
  statistics.kind = OpKind::cross_entropy;
  statistics.size = finish.size;
  for (const Slot slot : {Slot::loss_scale, Slot::row_weight, Slot::loss_sum})
    statistics.operands.set(slot, finish[slot]);
  return true;
}

bool fuse_norm(Op& residual, const Op& norm) {
  if (residual.kind != OpKind::residual_forward || !residual.has(Slot::residual) ||
      (norm.kind != OpKind::layernorm_forward && norm.kind != OpKind::rmsnorm_forward))
    return false;
  if (!is_same(residual[Slot::sum], norm[Slot::x]) || !has_same_rows(residual, norm) ||
      residual.as<RowSize>().columns != norm.as<RowSize>().columns ||
      residual.recompute != norm.recompute)
    return false;
  // Its layer and site, which the masks of dropout depend on, are those of the sum.
  Op fused = norm;
  fused.layer = residual.layer;
  fused.site = residual.site;
  fused.operands.set(Slot::x, {});
  for (const Slot slot : {Slot::residual, Slot::branch, Slot::sum})
    fused.operands.set(slot, residual[slot]);
  residual = fused;
  return true;
}

}  // namespace gptbench
