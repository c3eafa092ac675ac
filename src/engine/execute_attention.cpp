// Attention operations, and where the rows of this rank stand in their sequences.
#include "engine/engine.h"
#include "plan/context.h"

namespace gptbench {
namespace {

Positions as_positions(const HeldPositions& held) {
  return {{held.begin[0], held.begin[1]}, held.split};
}

// Those of rows first .. first + count - 1.
Positions part_of(const Positions& all, int64_t first) {
  if (first < all.split) return {{all.begin[0] + first, all.begin[1]}, all.split - first};
  return {{all.begin[1] + first - all.split, 0}, INT64_MAX};
}

void* shifted(void* base, int64_t elements, DType type) {
  return static_cast<char*>(base) + elements * size_of(type);
}
const void* shifted(const void* base, int64_t elements, DType type) {
  return static_cast<const char*>(base) + elements * size_of(type);
}

}  // namespace

Positions Engine::positions() const {
  return as_positions(held_positions(plan_.shape.T, plan_.grid.context, plan_.at.context));
}

// Where the rows of this rank's part of a micro-batch lie in the global batch.
GlobalRows Engine::global_rows(const Op& op, const Task& task, int64_t rows) const {
  return {task.sequences.first, op.row_div > 1 ? plan_.at.tensor * rows : 0, plan_.T_local(),
          plan_.shape.T, positions()};
}

// reads: q (rows of qkv), k and v side by side; backward dout before, out and lse behind; lengths
// last.
// writes: out, lse; backward dq, and dk and dv side by side. Keys and values of this rank itself
// are read from qkv, those of others from blocks of their own.
void Engine::run_attention(const Op& op, const Task& task) {
  const ModelShape& s = plan_.local;
  const bool forward = op.kind == OpKind::attention_forward;
  const bool in_blocks = op.peer >= 0;
  const int64_t own = plan_.at.context;
  const int64_t keys_of = in_blocks ? op.peer : own;
  const size_t q_at = forward ? 0 : 1, kv_at = q_at + 1;
  const int64_t packed = 2 * s.H_kv * s.D;
  const auto row_of = [&](const Operand& operand, int64_t alone) {
    return operand.buffer == op.reads[q_at].buffer ? s.qkv() : alone;
  };

  AttentionShape shape = whole_sequences(task.sequences.count, plan_.T_local(), s.H, s.H_kv, s.D,
                                         s.qkv(), row_of(op.reads[kv_at], packed), s.H * s.D);
  const AttentionBlock block =
      attention_block(plan_.shape.T, plan_.grid.context, own, keys_of, s.family.causal);
  shape.T = plan_.shape.T;
  shape.T_q = block.queries;
  shape.T_k = block.keys;
  shape.causal = block.masked;
  shape.q_positions = part_of(positions(), block.first_query);
  shape.k_positions = part_of(
      as_positions(held_positions(plan_.shape.T, plan_.grid.context, keys_of)), block.first_key);
  if (in_blocks) shape.keys = keys_of == own ? KeyBlock::first : KeyBlock::further;
  shape.alibi = s.family.positions == PositionKind::alibi;
  shape.lengths = static_cast<const int32_t*>(read_at(op, static_cast<int>(op.reads.size()) - 1));
  shape.dropout = dropout_of(op, plan_.config.model.dropout);
  shape.first_sequence = task.sequences.first;
  shape.first_head = plan_.at.tensor * s.H;
  shape.H_global = plan_.shape.H;

  const DType A = type_of(op.reads[q_at]);
  const int64_t v_offset = s.H_kv * s.D;
  const void* q = shifted(read_at(op, static_cast<int>(q_at)), block.first_query * shape.q_row, A);
  const void* k = shifted(read_at(op, static_cast<int>(kv_at)), block.first_key * shape.kv_row, A);
  const void* v = shifted(k, v_offset, A);
  const int64_t out_offset = block.first_query * shape.out_row;
  Queue& queue_of_op = queue(op.queue);
  if (forward) {
    const DType S = type_of(op.writes[1]);
    kernels_.attention_forward(
        queue_of_op, {shifted(write_at(op, 0), out_offset, type_of(op.writes[0])),
                      shifted(write_at(op, 1), block.first_query, S), q, k, v, shape, workspace()});
    return;
  }
  const DType S = type_of(op.reads[4]);
  const DType G = type_of(op.writes[0]);
  const int64_t dq_row = in_blocks ? s.H * s.D : s.qkv();
  const int64_t dkv_row = in_blocks ? packed : s.qkv();
  void* dk = shifted(write_at(op, 1), block.first_key * dkv_row, G);
  kernels_.attention_backward(
      queue_of_op,
      {shifted(write_at(op, 0), block.first_query * dq_row, G), dk, shifted(dk, v_offset, G),
       shifted(read_at(op, 0), out_offset, A), q, k, v, shifted(read_at(op, 3), out_offset, A),
       shifted(read_at(op, 4), block.first_query, S), shape, dq_row, dkv_row,
       plan_.T_local() * dq_row, plan_.T_local() * dkv_row, workspace()});
}

// Heads of q and of k follow one another in each row.
void Engine::run_rotary(const Op& op, int64_t rows) {
  const ModelShape& s = plan_.local;
  const bool inverse = op.kind == OpKind::rotary_backward;
  kernels_.rotary(queue(op.queue),
                  {write_at(op, 0), rows, s.H + s.H_kv, s.D, op.N, plan_.config.model.rotary_theta,
                   inverse, plan_.T_local(), positions()});
}

}  // namespace gptbench
