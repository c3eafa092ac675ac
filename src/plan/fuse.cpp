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
  if ((!forward && !backward) || activation.copies_fp8) return false;
  const auto type_of = [&](const Operand& operand) {
    return plan.buffers[static_cast<size_t>(operand.buffer)].dtype;
  };
  const Operand& result = linear.writes[0];
  if (!is_same(result, activation.reads[0]) || type_of(linear.reads[0]) != type_of(result) ||
      !has_same_rows(linear, activation) || linear.recompute != activation.recompute ||
      activation.N != (forward ? linear.N : linear.K))
    return false;
  if (backward && (linear.accumulate || !is_same(result, activation.writes[0]))) return false;
  if (forward) {
    linear.kind = OpKind::linear_gelu_forward;
    linear.writes.push_back(activation.writes[0]);
  } else {
    linear.kind = OpKind::linear_gelu_backward_input;
    linear.reads.push_back(activation.reads[1]);
  }
  return true;
}

bool fuse_norm(Op& residual, const Op& norm) {
  const bool centred = norm.kind == OpKind::layernorm_forward;
  if (residual.kind != OpKind::residual_forward || residual.reads[0].buffer < 0 ||
      (!centred && norm.kind != OpKind::rmsnorm_forward))
    return false;
  if (!is_same(residual.writes[0], norm.reads[0]) || !has_same_rows(residual, norm) ||
      residual.N != norm.N || residual.recompute != norm.recompute)
    return false;
  // Its layer and site, which the masks of dropout depend on, are those of the sum.
  Op fused = norm;
  fused.layer = residual.layer;
  fused.site = residual.site;
  fused.adds_residual = true;
  fused.reads[0] = residual.reads[0];
  const std::ptrdiff_t weights = centred ? 2 : 1, statistics = centred ? 2 : 1;
  fused.reads.insert(fused.reads.begin() + 1 + weights, residual.reads[1]);
  fused.writes.insert(fused.writes.begin() + 1 + statistics, residual.writes[0]);
  residual = fused;
  return true;
}

}  // namespace gptbench
