#include "plan/ops.h"

#include <limits>
#include <utility>

namespace gptbench::ops {
namespace {

Op make(OpKind kind, OpSize size, Operands operands) {
  Op op;
  op.kind = kind;
  op.size = size;
  op.operands = std::move(operands);
  return op;
}

Op on_rows(Op op, Rows rows) {
  op.layer = static_cast<int32_t>(rows.layer);
  op.row_count = std::numeric_limits<int64_t>::max();
  op.row_div = rows.div;
  return op;
}

// On rows where there is a count for each of them.
Op counted(Op op, ElementCount count, Rows rows) {
  return count.columns > 0 ? on_rows(std::move(op), rows) : op;
}

Op array_op(OpKind kind, ElementCount count, Operands operands, Rows rows) {
  return counted(make(kind, count, std::move(operands)), count, rows);
}

Op gemm(OpKind kind, Rows rows, const GemmSize& size, Operands operands) {
  Op op = on_rows(make(kind, size, std::move(operands)), rows);
  op.flops_per_row = 2.0 * static_cast<double>(size.K) * static_cast<double>(size.N);
  return op;
}

Op message(OpKind kind, Route route, const MessageSize& size, Operands operands, Rows rows) {
  Op op = counted(make(kind, size, std::move(operands)), size.count, rows);
  op.queue = route.queue;
  op.axis = route.axis;
  return op;
}

Op collective(OpKind kind, Route route, ElementCount count, int64_t element_bytes,
              Operands operands, Rows rows) {
  MessageSize size;
  size.count = count;
  size.element_bytes = element_bytes;
  return message(kind, route, size, std::move(operands), rows);
}

}  // namespace

Op row_op(OpKind kind, Rows rows, int64_t columns, Operands operands) {
  return on_rows(make(kind, RowSize{columns}, std::move(operands)), rows);
}

Op load_tokens(int64_t layer, Operand tokens, Operand targets, Operand types) {
  return array_op(OpKind::load_tokens, per_row(1),
                  {{Slot::tokens, tokens}, {Slot::targets, targets}, {Slot::types, types}},
                  {layer});
}

Op load_labels(int64_t layer, Operand labels) {
  return array_op(OpKind::load_labels, per_row(1), {{Slot::labels, labels}}, {layer});
}

Op load_lengths(int64_t layer, Operand lengths) {
  return array_op(OpKind::load_lengths, per_row(1), {{Slot::lengths, lengths}}, {layer});
}

Op load_control(Operand stop_votes, Operand row_weight) {
  return make(OpKind::load_control, {},
              {{Slot::stop_votes, stop_votes}, {Slot::row_weight, row_weight}});
}

Op fill_zero(ElementCount count, Operand y, Rows rows) {
  return array_op(OpKind::fill_zero, count, {{Slot::y, y}}, rows);
}

Op copy(ElementCount count, Operand x, Operand y, Rows rows) {
  return array_op(OpKind::copy, count, {{Slot::x, x}, {Slot::y, y}}, rows);
}

Op copy_part(ElementCount count, Operand x, Operand y, Rows rows) {
  return array_op(OpKind::copy_part, count, {{Slot::x, x}, {Slot::y, y}}, rows);
}

Op accumulate(ElementCount count, Operand x, Operand y, Rows rows) {
  return array_op(OpKind::accumulate, count, {{Slot::x, x}, {Slot::y, y}}, rows);
}

Op convert(const ConvertSize& size, Operand x, Operand y, Rows rows) {
  return counted(make(OpKind::convert, size, {{Slot::x, x}, {Slot::y, y}}), size.count, rows);
}

Op load(ElementCount count, Operand x, Operand y, Rows rows) {
  Op op = array_op(OpKind::load, count, {{Slot::x, x}, {Slot::y, y}}, rows);
  op.queue = QueueId::copy;
  return op;
}

Op store(ElementCount count, Operand x, Operand y, Rows rows) {
  Op op = array_op(OpKind::store, count, {{Slot::x, x}, {Slot::y, y}}, rows);
  op.queue = QueueId::copy;
  return op;
}

Op join(Operand part, Operand whole) {
  return make(OpKind::join, {}, {{Slot::part, part}, {Slot::whole, whole}});
}

Op linear_forward(Rows rows, GemmSize size, Operand x, Operand weight, Operand bias, Operand y) {
  return gemm(OpKind::linear_forward, rows, size,
              {{Slot::x, x}, {Slot::weight, weight}, {Slot::bias, bias}, {Slot::y, y}});
}

Op linear_backward_input(Rows rows, GemmSize size, Operand dy, Operand weight, Operand dx) {
  return gemm(OpKind::linear_backward_input, rows, size,
              {{Slot::dy, dy}, {Slot::weight, weight}, {Slot::dx, dx}});
}

Op linear_backward_weight(Rows rows, GemmSize size, Operand dy, Operand x, Operand dweight,
                          Operand dbias) {
  return gemm(OpKind::linear_backward_weight, rows, size,
              {{Slot::dy, dy}, {Slot::x, x}, {Slot::dweight, dweight}, {Slot::dbias, dbias}});
}

void set_fp8_scales(Op& gemm, Operand left, Operand right) {
  gemm.operands.set(Slot::left_scale, left);
  gemm.operands.set(Slot::right_scale, right);
}

void set_fp8_copy(Op& op, const Fp8CopyOperands& copy) {
  op.operands.set(Slot::fp8_scale, copy.scale);
  op.operands.set(Slot::fp8_copy, copy.copy);
  op.operands.set(Slot::fp8_transposed, copy.transposed);
  op.operands.set(Slot::amax, copy.amax);
  op.operands.set(Slot::column_sums, copy.column_sums);
}

Op fp8_quantize(Rows rows, int64_t columns, Operand x, const Fp8CopyOperands& copy) {
  Op op = on_rows(make(OpKind::fp8_quantize, MatrixSize{columns, 0}, {{Slot::x, x}}), rows);
  set_fp8_copy(op, copy);
  return op;
}

Op fp8_quantize_matrix(int64_t layer, const MatrixSize& size, Operand x,
                       const Fp8CopyOperands& copy) {
  Op op = make(OpKind::fp8_quantize, size, {{Slot::x, x}});
  op.layer = static_cast<int32_t>(layer);
  set_fp8_copy(op, copy);
  return op;
}

Op fp8_update_scales(int64_t tensors, const Fp8ScaleOperands& state) {
  return make(OpKind::fp8_update_scales, flat(tensors),
              {{Slot::fp8_scale, state.scale},
               {Slot::fp8_inverse, state.inverse},
               {Slot::amax, state.amax},
               {Slot::amax_history, state.history},
               {Slot::history_position, state.position}});
}

Op norm_forward(NormKind kind, Rows rows, int64_t columns, Operand x, const NormOperands& norm,
                Operand y) {
  return row_op(kind == NormKind::layernorm ? OpKind::layernorm_forward : OpKind::rmsnorm_forward,
                rows, columns,
                {{Slot::x, x},
                 {Slot::weight, norm.weight},
                 {Slot::bias, norm.bias},
                 {Slot::y, y},
                 {Slot::mean, norm.mean},
                 {Slot::rstd, norm.rstd}});
}

Op norm_backward(NormKind kind, Rows rows, int64_t columns, Operand dy, Operand x,
                 const NormOperands& norm, const NormGradients& gradients) {
  return row_op(kind == NormKind::layernorm ? OpKind::layernorm_backward : OpKind::rmsnorm_backward,
                rows, columns,
                {{Slot::dy, dy},
                 {Slot::x, x},
                 {Slot::weight, norm.weight},
                 {Slot::mean, norm.mean},
                 {Slot::rstd, norm.rstd},
                 {Slot::dx, gradients.dx},
                 {Slot::dweight, gradients.dweight},
                 {Slot::dbias, gradients.dbias},
                 {Slot::column_sums, gradients.column_sums}});
}

Op attention_forward(Rows rows, const AttentionSize& size, double flops_per_row,
                     const AttentionOperands& operands) {
  Op op = on_rows(make(OpKind::attention_forward, size,
                       {{Slot::q, operands.q},
                        {Slot::kv, operands.kv},
                        {Slot::lengths, operands.lengths},
                        {Slot::out, operands.out},
                        {Slot::lse, operands.lse}}),
                  rows);
  op.flops_per_row = flops_per_row;
  return op;
}

Op attention_backward(Rows rows, const AttentionSize& size, double flops_per_row,
                      const AttentionOperands& operands, const AttentionGradients& gradients) {
  Op op = attention_forward(rows, size, flops_per_row, operands);
  op.kind = OpKind::attention_backward;
  op.operands.set(Slot::dout, gradients.dout);
  op.operands.set(Slot::dq, gradients.dq);
  op.operands.set(Slot::dkv, gradients.dkv);
  return op;
}

Op activation_forward(ActivationKind kind, Rows rows, int64_t columns, Operand x, Operand y) {
  return row_op(kind == ActivationKind::swiglu ? OpKind::swiglu_forward : OpKind::gelu_forward,
                rows, columns, {{Slot::x, x}, {Slot::y, y}});
}

Op activation_backward(ActivationKind kind, Rows rows, int64_t columns, Operand dy, Operand x,
                       Operand dx) {
  return row_op(kind == ActivationKind::swiglu ? OpKind::swiglu_backward : OpKind::gelu_backward,
                rows, columns, {{Slot::dy, dy}, {Slot::x, x}, {Slot::dx, dx}});
}

Op residual_forward(Rows rows, int32_t site, int64_t columns, Operand residual, Operand branch,
                    Operand sum) {
  Op op = row_op(OpKind::residual_forward, rows, columns,
                 {{Slot::residual, residual}, {Slot::branch, branch}, {Slot::sum, sum}});
  op.site = site;
  return op;
}

Op dropout_backward(Rows rows, int32_t site, int64_t columns, Operand dy, Operand dx) {
  Op op = row_op(OpKind::dropout_backward, rows, columns, {{Slot::dy, dy}, {Slot::dx, dx}});
  op.site = site;
  return op;
}

Op embedding_forward(int64_t columns, Operand tokens, Operand types, const EmbeddingTables& tables,
                     Operand y) {
  return row_op(OpKind::embedding_forward, {}, columns,
                {{Slot::tokens, tokens},
                 {Slot::types, types},
                 {Slot::token_table, tables.token},
                 {Slot::position_table, tables.position},
                 {Slot::type_table, tables.type},
                 {Slot::y, y}});
}

Op embedding_backward(int64_t columns, Operand dy, Operand tokens, Operand types,
                      const EmbeddingTables& gradients) {
  return row_op(OpKind::embedding_backward, {}, columns,
                {{Slot::dy, dy},
                 {Slot::tokens, tokens},
                 {Slot::types, types},
                 {Slot::dtoken_table, gradients.token},
                 {Slot::dposition_table, gradients.position},
                 {Slot::dtype_table, gradients.type}});
}

Op cross_entropy_statistics(int64_t layer, const LossSize& size, Operand logits, Operand targets,
                            const LossStatistics& statistics) {
  return on_rows(make(OpKind::cross_entropy_statistics, size,
                      {{Slot::logits, logits},
                       {Slot::targets, targets},
                       {Slot::row_max, statistics.row_max},
                       {Slot::row_sum, statistics.row_sum},
                       {Slot::target_logit, statistics.target_logit}}),
                 {layer});
}

Op cross_entropy_combine(int64_t layer, const LossPartsSize& size, Operand parts,
                         const LossStatistics& statistics) {
  return on_rows(make(OpKind::cross_entropy_combine, size,
                      {{Slot::parts, parts},
                       {Slot::row_max, statistics.row_max},
                       {Slot::row_sum, statistics.row_sum},
                       {Slot::target_logit, statistics.target_logit}}),
                 {layer});
}

Op cross_entropy_finish(int64_t layer, const LossSize& size, Operand logits, Operand targets,
                        const LossStatistics& statistics, const LossScalars& scalars) {
  return on_rows(make(OpKind::cross_entropy_finish, size,
                      {{Slot::row_max, statistics.row_max},
                       {Slot::row_sum, statistics.row_sum},
                       {Slot::target_logit, statistics.target_logit},
                       {Slot::targets, targets},
                       {Slot::loss_scale, scalars.loss_scale},
                       {Slot::row_weight, scalars.row_weight},
                       {Slot::loss_sum, scalars.loss_sum},
                       {Slot::logits, logits}}),
                 {layer});
}

Op squared_norm(int64_t elements, Operand gradient, Operand norm2) {
  return make(OpKind::squared_norm, flat(elements),
              {{Slot::gradient, gradient}, {Slot::norm2, norm2}});
}

Op sum_scalars(int64_t elements, Operand x, Operand y) {
  return make(OpKind::sum_scalars, flat(elements), {{Slot::x, x}, {Slot::y, y}});
}

Op loss_scale(const LossScaleOperands& operands) {
  return make(OpKind::loss_scale, {},
              {{Slot::scale_state, operands.state},
               {Slot::norm2, operands.norm2},
               {Slot::loss_scale, operands.loss_scale},
               {Slot::next_loss_scale, operands.next_loss_scale},
               {Slot::skip, operands.skip}});
}

Op clip_factor(Operand norm2, Operand loss_sum, Operand loss_scale, Operand factor) {
  return make(OpKind::clip_factor, {},
              {{Slot::norm2, norm2},
               {Slot::loss_sum, loss_sum},
               {Slot::loss_scale, loss_scale},
               {Slot::clip_factor, factor}});
}

Op adamw(const UpdateSize& size, const AdamWOperands& operands) {
  return make(OpKind::adamw, size,
              {{Slot::gradient, operands.gradient},
               {Slot::clip_factor, operands.clip_factor},
               {Slot::skip, operands.skip},
               {Slot::master, operands.master},
               {Slot::moment1, operands.moment1},
               {Slot::moment2, operands.moment2},
               {Slot::working, operands.working}});
}

Op all_reduce(Route route, ElementCount count, int64_t element_bytes, Operand whole, Rows rows) {
  return collective(OpKind::all_reduce, route, count, element_bytes, {{Slot::whole, whole}}, rows);
}

Op reduce_scatter(Route route, ElementCount count, int64_t element_bytes, Operand whole,
                  Operand part, Rows rows) {
  return collective(OpKind::reduce_scatter, route, count, element_bytes,
                    {{Slot::whole, whole}, {Slot::part, part}}, rows);
}

Op all_gather(Route route, ElementCount count, int64_t element_bytes, Operand part, Operand whole,
              Rows rows) {
  return collective(OpKind::all_gather, route, count, element_bytes,
                    {{Slot::part, part}, {Slot::whole, whole}}, rows);
}

Op send(Route route, const MessageSize& message, Operand x, Rows rows) {
  return ops::message(OpKind::send, route, message, {{Slot::x, x}}, rows);
}

Op receive(Route route, const MessageSize& message, Operand y, Rows rows) {
  return ops::message(OpKind::receive, route, message, {{Slot::y, y}}, rows);
}

}  // namespace gptbench::ops
