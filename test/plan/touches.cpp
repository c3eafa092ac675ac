#include "touches.h"

#include "base/fp8.h"

namespace gptbench {
namespace {

class TouchList {
 public:
  TouchList(const Op& op, std::vector<Touch>& list) : op_(op), list_(list) {}

  void reads(std::vector<int64_t> elements) { add(op_.reads, elements, Access::read); }
  void assigns(std::vector<int64_t> elements) { add(op_.writes, elements, Access::assign); }
  void accumulates(std::vector<int64_t> elements) { add(op_.writes, elements, Access::accumulate); }
  // Both scales of an fp8 product.
  void scales(size_t first) {
    for (const size_t position : {first, first + 1})
      list_.push_back({op_.reads.at(position), 1, Access::read});
  }
  // One read at a distance from its operand.
  void read(size_t position, int64_t distance, int64_t elements) {
    Operand operand = op_.reads.at(position);
    operand.offset += distance;
    list_.push_back({operand, elements, Access::read});
  }
  // The parts of `ranks` ranks, of which the one read is this rank's.
  void gather(int64_t part, int64_t ranks) {
    list_.push_back({op_.reads.at(0), part, Access::transmit});
    for (int64_t rank = 0; rank < ranks; ++rank) {
      Operand target = op_.writes.at(0);
      target.offset += rank * part;
      list_.push_back({target, part, Access::arrive});
    }
  }
  // `columns` elements of rows first .. first + count - 1 of each of B sequences of T rows,
  // `stride` elements apart.
  void rows(const Operand& operand, int64_t B, int64_t T, int64_t first, int64_t count,
            int64_t stride, int64_t columns, Access access) {
    for (int64_t b = 0; b < B; ++b)
      for (int64_t row = b * T + first; row < b * T + first + count; ++row)
        list_.push_back({{operand.buffer, operand.offset + row * stride}, columns, access});
  }
  void accumulate(size_t position, int64_t distance, int64_t elements) {
    Operand operand = op_.writes.at(position);
    operand.offset += distance;
    list_.push_back({operand, elements, Access::accumulate});
  }
  // One write with an access of its own.
  void write(size_t position, int64_t elements, Access access) {
    list_.push_back({op_.writes.at(position), elements, access});
  }

 private:
  void add(const std::vector<Operand>& operands, const std::vector<int64_t>& elements,
           Access access) {
    for (size_t i = 0; i < elements.size(); ++i)
      list_.push_back({operands.at(i), elements[i], access});
  }

  const Op& op_;
  std::vector<Touch>& list_;
};

// Causal attention of whole sequences (peer -1), or of the rows that a context rank holds (its
// positions: chunks r and 2c - 1 - r of 2c) with the keys of rank `peer`.
void attention_touches(TouchList& touch, const Plan& plan, const Op& op, int64_t B) {
  const ModelShape s = local_shape(plan.shape, plan.grid.tensor);
  const bool forward = op.kind == OpKind::attention_forward, alone = op.peer < 0;
  const int64_t T = s.T / plan.grid.context, own = plan.at.context, queries = s.H * s.D;
  const int64_t packed = 2 * s.H_kv * s.D;
  const bool later = op.peer > own, earlier = !alone && op.peer < own;
  const int64_t first_query = later ? T / 2 : 0, T_q = later ? T / 2 : T;
  const int64_t T_k = earlier ? T / 2 : T;
  const size_t q = forward ? 0 : 1;
  const int64_t kv_row = later || earlier ? packed : s.qkv();
  const auto lse = [&](const Operand& operand, Access access) {
    touch.rows(operand, B * s.H, T, first_query, T_q, 1, 1, access);
  };
  touch.rows(op.reads.at(q), B, T, first_query, T_q, s.qkv(), queries, Access::read);
  touch.rows(op.reads.at(q + 1), B, T, 0, T_k, kv_row, packed, Access::read);
  touch.read(forward ? 2 : 5, 0, B);
  if (forward) {
    const Access access = later || earlier ? Access::accumulate : Access::assign;
    touch.rows(op.writes.at(0), B, T, first_query, T_q, queries, queries, access);
    lse(op.writes.at(1), access);
    return;
  }
  const Access access = alone ? Access::assign : Access::accumulate;
  touch.rows(op.reads.at(0), B, T, first_query, T_q, queries, queries, Access::read);
  touch.rows(op.reads.at(3), B, T, first_query, T_q, queries, queries, Access::read);
  lse(op.reads.at(4), Access::read);
  touch.rows(op.writes.at(0), B, T, first_query, T_q, alone ? s.qkv() : queries, queries, access);
  touch.rows(op.writes.at(1), B, T, 0, T_k, alone ? s.qkv() : packed, packed, access);
}

}  // namespace

std::vector<Touch> touches_of(const Plan& plan, const Op& op, const Task& task) {
  const ModelShape s = local_shape(plan.shape, plan.grid.tensor);
  const int64_t all_rows = task.sequences.count * (s.T / plan.grid.context);
  const int64_t R = rows_of(op, all_rows);
  const int64_t K = op.K, N = op.N, n = op.elements;
  // Of messages: elements of the full array, and of the part of one rank.
  const int64_t whole = op.row_count > 0 ? all_rows * N : n;
  const int64_t part = is_message(op.kind) ? whole / plan.grid.size_of(op.axis) : 0;
  // Of a row a sequence: the rows of this rank's part, and the first of them that begins a
  // sequence.
  const int64_t part_rows = all_rows / op.row_div;
  const int64_t first_position = (s.T - op.part * part_rows % s.T) % s.T;
  // Of fp8 factors: whether there are, and how many rows they have where they stand as columns.
  const bool fp8 = !op.reads.empty() && op.reads[0].buffer >= 0 &&
                   is_fp8(plan.buffers[static_cast<size_t>(op.reads[0].buffer)].dtype);
  const auto columns_of = [&](int64_t rows) { return op.transposed ? padded_rows(rows) : rows; };
  const int64_t rows_or_flat = op.row_count > 0 ? R : N > 0 ? n / N : 0;
  std::vector<Touch> list;
  TouchList touch(op, list);
  switch (op.kind) {
    case OpKind::load_tokens:
      touch.assigns({R, R, R});
      break;
    case OpKind::load_labels:
    case OpKind::load_lengths:
      touch.assigns({R});
      break;
    case OpKind::load_control:
      touch.assigns({1, 1});
      break;
    case OpKind::fill_zero:
      touch.assigns({op.row_count > 0 ? R * N : n});
      break;
    case OpKind::join:
      break;
    case OpKind::copy:
      touch.reads({op.row_count > 0 ? R * N : n});
      touch.assigns({op.row_count > 0 ? R * N : n});
      break;
    case OpKind::linear_forward:
      touch.reads({R * K, N * K, N});
      if (fp8) touch.scales(3);
      touch.assigns({R * N});
      break;
    case OpKind::linear_backward_input:
      touch.reads({R * N, N * K});
      if (fp8) touch.scales(2);
      touch.write(0, R * K, op.accumulate ? Access::accumulate : Access::assign);
      break;
    case OpKind::linear_backward_weight:
      touch.reads({columns_of(R) * N, columns_of(R) * K});
      if (fp8) touch.scales(2);
      touch.accumulates({N * K, N});
      break;
    case OpKind::linear_gelu_forward:
      touch.reads({R * K, N * K, N});
      touch.assigns({R * N, R * N});
      break;
    case OpKind::linear_gelu_backward_input:
      touch.reads({R * N, N * K, R * K});
      touch.assigns({R * K});
      break;
    case OpKind::bias_backward:
      touch.reads({R * N});
      touch.accumulates({N});
      break;
    case OpKind::layernorm_forward:
      touch.reads(op.adds_residual ? std::vector<int64_t>{R * N, N, N, R * N}
                                   : std::vector<int64_t>{R * N, N, N});
      touch.assigns(op.adds_residual ? std::vector<int64_t>{R * N, R, R, R * N}
                                     : std::vector<int64_t>{R * N, R, R});
      break;
    case OpKind::layernorm_backward:
      touch.reads({R * N, R * N, N, R, R});
      touch.accumulates({R * N, N, N});
      break;
    case OpKind::rmsnorm_forward:
      touch.reads(op.adds_residual ? std::vector<int64_t>{R * N, N, R * N}
                                   : std::vector<int64_t>{R * N, N});
      touch.assigns(op.adds_residual ? std::vector<int64_t>{R * N, R, R * N}
                                     : std::vector<int64_t>{R * N, R});
      break;
    case OpKind::rmsnorm_backward:
      touch.reads({R * N, R * N, N, R});
      touch.accumulates({R * N, N});
      break;
    case OpKind::rotary_forward:
    case OpKind::rotary_backward:
      touch.accumulates({R * N});  // turned in place, v left as it is
      break;
    case OpKind::swiglu_forward:
      touch.reads({R * 2 * N});
      touch.assigns({R * N});
      break;
    case OpKind::swiglu_backward:
      touch.reads({R * N, R * 2 * N});
      touch.assigns({R * 2 * N});
      break;
    case OpKind::attention_forward:
    case OpKind::attention_backward:
      attention_touches(touch, plan, op, task.sequences.count);
      break;
    case OpKind::gelu_forward:
    case OpKind::dropout_backward:
      touch.reads({R * N});
      touch.assigns({R * N});
      break;
    case OpKind::gelu_backward:
    case OpKind::residual_forward:
      touch.reads({R * N, R * N});
      touch.assigns({R * N});
      break;
    case OpKind::tanh_forward:
      touch.reads({R * N});
      touch.assigns({R * N});
      break;
    case OpKind::tanh_backward:
      touch.reads({R * N, R * N});
      touch.assigns({R * N});
      break;
    case OpKind::first_rows_forward:
      for (int64_t row = first_position; row < part_rows; row += s.T) touch.read(0, row * N, N);
      touch.assigns({R * N});
      break;
    case OpKind::first_rows_backward:
      touch.reads({R * N});
      for (int64_t row = first_position; row < part_rows; row += s.T)
        touch.accumulate(0, row * N, N);
      break;
    case OpKind::embedding_forward:
      touch.reads({R, s.V * N, s.T * N, R, 2 * N});
      touch.assigns({R * N});
      break;
    case OpKind::embedding_backward:
      touch.reads({R * N, R, R});
      touch.accumulates({s.V * N, s.T * N, 2 * N});
      break;
    case OpKind::cross_entropy_statistics:
      touch.reads({R * N, R});
      touch.assigns({R, R, R});
      break;
    case OpKind::cross_entropy_combine:
      for (int64_t rank = 0; rank < plan.grid.tensor; ++rank)
        for (int64_t array = 0; array < 3; ++array) touch.read(0, rank * n + array * K, R);
      touch.assigns({R, R, R});
      break;
    case OpKind::cross_entropy_finish:
      touch.reads({R, R, R, R, 1, 1});
      touch.accumulates({1, R * N});
      break;
    case OpKind::fp8_quantize:
      touch.reads({rows_or_flat * N});
      break;
    case OpKind::fp8_transpose:
      touch.reads({R * N});
      touch.assigns({padded_rows(R) * N});
      break;
    case OpKind::fp8_update_scales:
      touch.accumulates({n, n, n, n * plan.config.precision.fp8_amax_history, n});
      break;
    case OpKind::accumulate:
      touch.reads({op.row_count > 0 ? R * N : n});
      touch.accumulates({op.row_count > 0 ? R * N : n});
      break;
    case OpKind::squared_norm:
      touch.reads({n});
      touch.accumulates({1});
      break;
    case OpKind::sum_scalars:
      touch.reads({n});
      touch.assigns({1});
      break;
    case OpKind::loss_scale:
      touch.accumulates({3, 1});
      for (const size_t position : {2, 3, 4}) touch.write(position, 1, Access::assign);
      break;
    case OpKind::clip_factor:
      touch.reads({1, 1, 1});
      touch.assigns({1});
      break;
    case OpKind::adamw:
      touch.reads({n, 1, 1});
      touch.accumulates({n, n, n});
      touch.write(3, n, Access::assign);
      break;
    case OpKind::convert:
      if (op.row_count == 0) {
        touch.reads({n});
        touch.write(0, n, op.accumulate ? Access::accumulate : Access::assign);
        break;
      }
      touch.rows(op.reads.at(0), 1, R, 0, R, op.read_stride > 0 ? op.read_stride : N, N,
                 Access::read);
      touch.rows(op.writes.at(0), 1, R, 0, R, op.write_stride > 0 ? op.write_stride : N, N,
                 op.accumulate ? Access::accumulate : Access::assign);
      break;
    case OpKind::all_reduce:
      touch.accumulates({whole});
      break;
    case OpKind::reduce_scatter:
      touch.reads({whole});
      touch.assigns({part});
      break;
    case OpKind::all_gather:
      // All ranks do the same: what this one knows nothing of in its own part (rows beyond those of
      // the micro-batch), the others know nothing of in theirs.
      touch.gather(part, plan.grid.size_of(op.axis));
      break;
    case OpKind::load:
    case OpKind::store:
      touch.reads({op.row_count > 0 ? R * N : n});
      touch.assigns({op.row_count > 0 ? R * N : n});
      break;
    case OpKind::send:
      touch.reads({R * N});
      break;
    case OpKind::receive:
      touch.assigns({R * N});
      break;
  }
  if (op.copies_fp8) {
    const int64_t columns = op.kind == OpKind::swiglu_backward ? 2 * N : N;
    const size_t first = op.writes.size() - 4;
    list.push_back({op.reads.back(), 1, Access::read});
    touch.write(first, rows_or_flat * columns, Access::assign);
    touch.write(first + 1, padded_rows(rows_or_flat) * columns, Access::assign);
    touch.write(first + 2, 1, Access::accumulate);
    touch.write(first + 3, columns, Access::accumulate);
  }
  return list;
}

}  // namespace gptbench
