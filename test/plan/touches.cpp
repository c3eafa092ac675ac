#include "touches.h"

#include "base/fp8.h"

namespace gptbench {
namespace {

class TouchList {
 public:
  TouchList(const Op& op, std::vector<Touch>& list) : op_(op), list_(list) {}

  void read(Slot slot, int64_t elements) { add(slot, 0, elements, TouchKind::read); }
  void assign(Slot slot, int64_t elements) { add(slot, 0, elements, TouchKind::assign); }
  void accumulate(Slot slot, int64_t elements) { add(slot, 0, elements, TouchKind::accumulate); }
  // Elements at a distance from the operand.
  void add(Slot slot, int64_t distance, int64_t elements, TouchKind kind) {
    Operand operand = op_[slot];
    operand.offset += distance;
    list_.push_back({operand, elements, kind, slot});
  }
  // The parts of `ranks` ranks, of which the one read is this rank's.
  void gather(int64_t part, int64_t ranks) {
    add(Slot::part, 0, part, TouchKind::transmit);
    for (int64_t rank = 0; rank < ranks; ++rank)
      add(Slot::whole, rank * part, part, TouchKind::arrive);
  }
  // `columns` elements of rows first .. first + count - 1 of each of B sequences of T rows,
  // `stride` elements apart.
  struct Rows {
    int64_t B, T, first, count;
  };
  void rows(Slot slot, const Rows& rows, int64_t stride, int64_t columns, TouchKind kind) {
    for (int64_t b = 0; b < rows.B; ++b)
      for (int64_t row = b * rows.T + rows.first; row < b * rows.T + rows.first + rows.count; ++row)
        add(slot, row * stride, columns, kind);
  }

 private:
  const Op& op_;
  std::vector<Touch>& list_;
};

// Causal attention of whole sequences (keys_of -1), or of the rows that a context rank holds (its
// positions: chunks r and 2c - 1 - r of 2c) with the keys of rank `keys_of`.
void attention_touches(TouchList& touch, const Plan& plan, const Op& op, int64_t B) {
  const ModelShape s = local_shape(plan.shape, plan.grid.tensor);
  const int64_t keys_of = op.as<AttentionSize>().keys_of;
  const bool alone = keys_of < 0;
  const int64_t T = s.T / plan.grid.context, own = plan.at.context, queries = s.H * s.D;
  const int64_t packed = 2 * s.H_kv * s.D;
  const bool later = keys_of > own, earlier = !alone && keys_of < own;
  const int64_t first_query = later ? T / 2 : 0, T_q = later ? T / 2 : T;
  const int64_t T_k = earlier ? T / 2 : T;
  const int64_t kv_row = later || earlier ? packed : s.qkv();
  const TouchList::Rows of_queries{B, T, first_query, T_q}, of_keys{B, T, 0, T_k};
  const TouchList::Rows of_lse{B * s.H, T, first_query, T_q};
  touch.rows(Slot::q, of_queries, s.qkv(), queries, TouchKind::read);
  touch.rows(Slot::kv, of_keys, kv_row, packed, TouchKind::read);
  touch.read(Slot::lengths, B);
  if (op.kind == OpKind::attention_forward) {
    const TouchKind kind = later || earlier ? TouchKind::accumulate : TouchKind::assign;
    touch.rows(Slot::out, of_queries, queries, queries, kind);
    touch.rows(Slot::lse, of_lse, 1, 1, kind);
    return;
  }
  const TouchKind kind = alone ? TouchKind::assign : TouchKind::accumulate;
  touch.rows(Slot::dout, of_queries, queries, queries, TouchKind::read);
  touch.rows(Slot::out, of_queries, queries, queries, TouchKind::read);
  touch.rows(Slot::lse, of_lse, 1, 1, TouchKind::read);
  touch.rows(Slot::dq, of_queries, alone ? s.qkv() : queries, queries, kind);
  touch.rows(Slot::dkv, of_keys, alone ? s.qkv() : packed, packed, kind);
}

void linear_touches(TouchList& touch, const Op& op, const Task& task, int64_t R) {
  const auto [K, N, transposed, sum] = op.as<GemmSize>();
  const bool begins = sum == GradientSum::begins_micro_batch ||
                      (sum == GradientSum::begins_step && task.micro_batch == 0);
  const int64_t columns = transposed ? padded_rows(R) : R;  // where rows stand as columns
  switch (op.kind) {
    case OpKind::linear_forward:
    case OpKind::linear_gelu_forward:
      touch.read(Slot::x, R * K);
      touch.read(Slot::weight, N * K);
      touch.read(Slot::bias, N);
      touch.assign(Slot::y, R * N);
      touch.assign(Slot::activation, R * N);
      break;
    case OpKind::linear_backward_input:
    case OpKind::linear_gelu_backward_input:
      touch.read(Slot::dy, R * N);
      touch.read(Slot::weight, N * K);
      touch.read(Slot::pre, R * K);
      touch.assign(Slot::dx, R * K);
      touch.accumulate(Slot::dbias, K);
      break;
    default:
      touch.read(Slot::dy, columns * N);
      touch.read(Slot::x, columns * K);
      touch.add(Slot::dweight, 0, N * K,
                begins && op.row_begin == 0 ? TouchKind::assign : TouchKind::accumulate);
      touch.accumulate(Slot::dbias, N);
      break;
  }
  touch.read(Slot::left_scale, 1);
  touch.read(Slot::right_scale, 1);
}

// Norms, element-wise operations and embedding: R rows of C columns.
void row_touches(TouchList& touch, const Plan& plan, const Op& op, const Task& task, int64_t R) {
  const ModelShape s = local_shape(plan.shape, plan.grid.tensor);
  const int64_t C = op.as<RowSize>().columns;
  // Operations with a row per sequence: the rows of this rank's part, and the first of them that
  // begins a sequence.
  const int64_t part_rows = task.sequences.count * (s.T / plan.grid.context) / op.row_div;
  const int64_t first_position = (s.T - op.part * part_rows % s.T) % s.T;
  switch (op.kind) {
    case OpKind::bias_backward:
      touch.read(Slot::dy, R * C);
      touch.accumulate(Slot::dbias, C);
      break;
    case OpKind::layernorm_forward:
    case OpKind::rmsnorm_forward:
      for (const Slot slot : {Slot::x, Slot::residual, Slot::branch}) touch.read(slot, R * C);
      touch.read(Slot::weight, C);
      touch.read(Slot::bias, C);
      touch.assign(Slot::sum, R * C);
      touch.assign(Slot::y, R * C);
      touch.assign(Slot::mean, R);
      touch.assign(Slot::rstd, R);
      break;
    case OpKind::layernorm_backward:
    case OpKind::rmsnorm_backward:
      touch.read(Slot::dy, R * C);
      touch.read(Slot::x, R * C);
      touch.read(Slot::weight, C);
      touch.read(Slot::mean, R);
      touch.read(Slot::rstd, R);
      touch.accumulate(Slot::dx, R * C);
      touch.accumulate(Slot::dweight, C);
      touch.accumulate(Slot::dbias, C);
      touch.accumulate(Slot::column_sums, C);
      break;
    case OpKind::rotary_forward:  // turned in place, v left as it is
      touch.accumulate(Slot::x, R * C);
      break;
    case OpKind::rotary_backward:
      touch.accumulate(Slot::dx, R * C);
      break;
    case OpKind::swiglu_forward:
      touch.read(Slot::x, R * 2 * C);
      touch.assign(Slot::y, R * C);
      break;
    case OpKind::swiglu_backward:
      touch.read(Slot::dy, R * C);
      touch.read(Slot::x, R * 2 * C);
      touch.assign(Slot::dx, R * 2 * C);
      break;
    case OpKind::gelu_forward:
    case OpKind::tanh_forward:
      touch.read(Slot::x, R * C);
      touch.assign(Slot::y, R * C);
      break;
    case OpKind::gelu_backward:
      touch.read(Slot::dy, R * C);
      touch.read(Slot::x, R * C);
      touch.assign(Slot::dx, R * C);
      break;
    case OpKind::tanh_backward:
      touch.read(Slot::dy, R * C);
      touch.read(Slot::y, R * C);
      touch.assign(Slot::dx, R * C);
      break;
    case OpKind::first_rows_forward:
      for (int64_t row = first_position; row < part_rows; row += s.T)
        touch.add(Slot::x, row * C, C, TouchKind::read);
      touch.assign(Slot::y, R * C);
      break;
    case OpKind::first_rows_backward:
      touch.read(Slot::dy, R * C);
      for (int64_t row = first_position; row < part_rows; row += s.T)
        touch.add(Slot::dx, row * C, C, TouchKind::accumulate);
      break;
    case OpKind::residual_forward:
      touch.read(Slot::residual, R * C);
      touch.read(Slot::branch, R * C);
      touch.assign(Slot::sum, R * C);
      break;
    case OpKind::dropout_backward:
      touch.read(Slot::dy, R * C);
      touch.assign(Slot::dx, R * C);
      break;
    case OpKind::embedding_forward:
      touch.read(Slot::tokens, R);
      touch.read(Slot::types, R);
      touch.read(Slot::token_table, s.V * C);
      touch.read(Slot::position_table, s.T * C);
      touch.read(Slot::type_table, 2 * C);
      touch.assign(Slot::y, R * C);
      break;
    case OpKind::embedding_backward:
      touch.read(Slot::dy, R * C);
      touch.read(Slot::tokens, R);
      touch.read(Slot::types, R);
      touch.accumulate(Slot::dtoken_table, s.V * C);
      touch.accumulate(Slot::dposition_table, s.T * C);
      touch.accumulate(Slot::dtype_table, 2 * C);
      break;
    case OpKind::fp8_transpose:
      touch.read(Slot::x, R * C);
      touch.assign(Slot::y, padded_rows(R) * C);
      break;
    default:
      break;
  }
}

void loss_touches(TouchList& touch, const Plan& plan, const Op& op, int64_t R) {
  const auto statistics = [&](TouchKind kind) {
    for (const Slot slot : {Slot::row_max, Slot::row_sum, Slot::target_logit})
      touch.add(slot, 0, R, kind);
  };
  if (op.kind == OpKind::cross_entropy_combine) {
    const LossPartsSize& size = op.as<LossPartsSize>();
    for (int64_t rank = 0; rank < plan.grid.tensor; ++rank)
      for (int64_t array = 0; array < 3; ++array)
        touch.add(Slot::parts, rank * size.rank_stride + array * size.array_stride, R,
                  TouchKind::read);
    return statistics(TouchKind::assign);
  }
  const int64_t V = op.as<LossSize>().columns;
  touch.read(Slot::targets, R);
  if (op.kind == OpKind::cross_entropy_statistics) {
    touch.read(Slot::logits, R * V);
    return statistics(TouchKind::assign);
  }
  statistics(op.kind == OpKind::cross_entropy ? TouchKind::assign : TouchKind::read);
  touch.read(Slot::loss_scale, 1);
  touch.read(Slot::row_weight, 1);
  touch.accumulate(Slot::loss_sum, 1);
  touch.accumulate(Slot::logits, R * V);
}

// Arrays of n elements, whatever they hold.
void array_touches(TouchList& touch, const Plan& plan, OpKind kind, int64_t n) {
  switch (kind) {
    case OpKind::load_tokens:
      for (const Slot slot : {Slot::tokens, Slot::targets, Slot::types}) touch.assign(slot, n);
      break;
    case OpKind::load_labels:
      touch.assign(Slot::labels, n);
      break;
    case OpKind::load_lengths:
      touch.assign(Slot::lengths, n);
      break;
    case OpKind::fill_zero:
      touch.assign(Slot::y, n);
      break;
    case OpKind::copy:
    case OpKind::load:
    case OpKind::store:
      touch.read(Slot::x, n);
      touch.assign(Slot::y, n);
      break;
    case OpKind::copy_part:
      touch.add(Slot::x, plan.at.tensor * n, n, TouchKind::read);
      touch.assign(Slot::y, n);
      break;
    case OpKind::accumulate:
      touch.read(Slot::x, n);
      touch.accumulate(Slot::y, n);
      break;
    case OpKind::squared_norm:
      touch.read(Slot::gradient, n);
      touch.accumulate(Slot::norm2, 1);
      break;
    case OpKind::sum_scalars:
      touch.read(Slot::x, n);
      touch.assign(Slot::y, 1);
      break;
    default:  // fp8_update_scales
      for (const Slot slot : {Slot::fp8_scale, Slot::amax, Slot::history_position})
        touch.accumulate(slot, n);
      touch.accumulate(Slot::fp8_inverse, n * fp8_inverse_stride);
      touch.accumulate(Slot::amax_history, n * plan.config.precision.fp8_amax_history);
      break;
  }
}

// What a step needs once: votes, the loss scale, clipping, AdamW.
void scalar_touches(TouchList& touch, const Op& op) {
  switch (op.kind) {
    case OpKind::load_control:
      touch.assign(Slot::stop_votes, 1);
      touch.assign(Slot::row_weight, 1);
      break;
    case OpKind::loss_scale:
      touch.accumulate(Slot::scale_state, 3);
      touch.accumulate(Slot::norm2, 1);
      for (const Slot slot : {Slot::loss_scale, Slot::next_loss_scale, Slot::skip})
        touch.assign(slot, 1);
      break;
    case OpKind::clip_factor:
      for (const Slot slot : {Slot::norm2, Slot::loss_sum, Slot::loss_scale}) touch.read(slot, 1);
      touch.assign(Slot::clip_factor, 1);
      break;
    case OpKind::adamw: {
      const int64_t n = op.as<UpdateSize>().elements;
      touch.read(Slot::gradient, n);
      touch.read(Slot::clip_factor, 1);
      touch.read(Slot::skip, 1);
      for (const Slot slot : {Slot::master, Slot::moment1, Slot::moment2})
        touch.accumulate(slot, n);
      touch.assign(Slot::working, n);
      break;
    }
    default:  // join touches nothing
      break;
  }
}

void convert_touches(TouchList& touch, const Op& op, int64_t R) {
  const ConvertSize& size = op.as<ConvertSize>();
  const TouchKind kind = size.accumulate ? TouchKind::accumulate : TouchKind::assign;
  const int64_t C = size.count.columns;
  if (C == 0) {
    touch.read(Slot::x, size.count.fixed);
    touch.add(Slot::y, 0, size.count.fixed, kind);
    return;
  }
  touch.rows(Slot::x, {1, R, 0, R}, size.x_stride > 0 ? size.x_stride : C, C, TouchKind::read);
  touch.rows(Slot::y, {1, R, 0, R}, size.y_stride > 0 ? size.y_stride : C, C, kind);
}

void message_touches(TouchList& touch, const Plan& plan, const Op& op, int64_t held_rows) {
  const ElementCount& count = op.as<MessageSize>().count;
  const int64_t ranks = plan.grid.size_of(op.axis), whole = count.of(held_rows);
  const int64_t own = count.of(rows_of(op, held_rows));
  if (op.kind == OpKind::all_reduce) return touch.accumulate(Slot::whole, whole);
  // All ranks do the same: what this one knows nothing of in its own part (rows beyond those of the
  // micro-batch), the others know nothing of in theirs.
  if (op.kind == OpKind::all_gather) return touch.gather(whole / ranks, ranks);
  if (op.kind == OpKind::send) return touch.read(Slot::x, own);
  if (op.kind == OpKind::receive) return touch.assign(Slot::y, own);
  touch.read(Slot::whole, whole);
  touch.assign(Slot::part, whole / ranks);
}

}  // namespace

std::vector<Touch> touches_of(const Plan& plan, const Op& op, const Task& task) {
  const int64_t held_rows = task.sequences.count * (plan.shape.T / plan.grid.context);
  const int64_t R = rows_of(op, held_rows);
  std::vector<Touch> list;
  TouchList touch(op, list);
  int64_t copied_rows = R, copied_columns = 0;  // of an array that fp8 copies are made of
  if (is_message(op.kind)) {
    message_touches(touch, plan, op, held_rows);
  } else if (const auto* count = std::get_if<ElementCount>(&op.size)) {
    array_touches(touch, plan, op.kind, count->of(R));
  } else if (std::holds_alternative<GemmSize>(op.size)) {
    linear_touches(touch, op, task, R);
  } else if (const auto* rows = std::get_if<RowSize>(&op.size)) {
    row_touches(touch, plan, op, task, R);
    copied_columns = (op.kind == OpKind::swiglu_backward ? 2 : 1) * rows->columns;
  } else if (const auto* matrix = std::get_if<MatrixSize>(&op.size)) {
    copied_rows = op.row_count > 0 ? R : matrix->fixed_rows;
    copied_columns = matrix->columns;
    touch.read(Slot::x, copied_rows * copied_columns);
  } else if (std::holds_alternative<AttentionSize>(op.size)) {
    attention_touches(touch, plan, op, task.sequences.count);
  } else if (std::holds_alternative<ConvertSize>(op.size)) {
    convert_touches(touch, op, R);
  } else if (std::holds_alternative<LossSize>(op.size) ||
             std::holds_alternative<LossPartsSize>(op.size)) {
    loss_touches(touch, plan, op, R);
  } else {
    scalar_touches(touch, op);
  }
  if (op.has(Slot::fp8_scale) && op.kind != OpKind::fp8_update_scales) {
    touch.read(Slot::fp8_scale, 1);
    touch.assign(Slot::fp8_copy, copied_rows * copied_columns);
    touch.assign(Slot::fp8_transposed, padded_rows(copied_rows) * copied_columns);
    touch.accumulate(Slot::amax, 1);
    touch.accumulate(Slot::column_sums, copied_columns);
  }
  return list;
}

}  // namespace gptbench
