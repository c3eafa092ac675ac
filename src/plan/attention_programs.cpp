// Attention of a layer: of whole sequences in one operation, or of the positions that a rank of the
// context axis holds as a ring (Liu et al., arXiv:2310.01889). Blocks of keys and values go from
// rank to rank, each on its way while the one before it is worked on; backward their gradients
// follow them and end with their owner.
#include "base/units.h"
#include "plan/chunk_programs.h"

namespace gptbench {
namespace {

enum RingTag : int { keys_and_values = 0, their_gradients = 1 };

}  // namespace

void ChunkPrograms::add_ring_buffers() {
  const Plan& plan = builder_.plan();
  if (plan.grid.context == 1) return;
  const DType A = builder_.A();
  const DType S = builder_.S();
  const int64_t kv = 2 * s_.H_kv * s_.D;
  const auto travelling = [&](const std::string& name, DType dtype) {
    return builder_.shared_buffer("ring." + name, MemoryClass::communication, dtype,
                                  checked_product(plan.micro_batch_rows, kv, "keys and values"));
  };
  for (const size_t i : {0, 1}) {
    ring_.kv[i] = travelling("kv." + std::to_string(i), A);
    ring_.dkv[i] = travelling("dkv." + std::to_string(i), S);
  }
  ring_.dkv_arriving = travelling("dkv.arriving", S);
  const auto temporary = [&](const char* name) {
    return builder_.add_activation(prefix_ + name, Lifetime::program, S, s_.H * s_.D);
  };
  ring_.dq = temporary("dq");
  if (A != S) ring_.out = temporary("attention_sum");
}

// Rank at a distance along the ring.
int64_t ChunkPrograms::ring_neighbour(int64_t distance) const {
  const int64_t ranks = builder_.plan().grid.context;
  return (builder_.plan().at.context + distance + ranks) % ranks;
}

// Sends block `from` to the next rank of the ring and receives that of the previous one in `to`.
void ChunkPrograms::pass_on(int64_t l, int tag, int from, int to) {
  const DType dtype = builder_.plan().buffers[static_cast<size_t>(from)].dtype;
  const auto message = [&](OpKind kind, QueueId queue, Operand read, Operand write, int64_t peer) {
    Op op =
        row_message(kind, queue, Axis::context, l, 2 * s_.H_kv * s_.D, size_of(dtype), read, write);
    op.peer = static_cast<int32_t>(peer);
    op.tag = tag;
    builder_.emit(op);
  };
  message(OpKind::send, QueueId::send_context, {from}, {}, ring_neighbour(+1));
  message(OpKind::receive, QueueId::receive_context, {}, {to}, ring_neighbour(-1));
}

// Queries of this rank against the keys of one rank of the context axis. FLOPs are counted as if
// nothing were masked: a share of T / c keys for each query, whatever part of the block is formed.
void ChunkPrograms::emit_attention_step(OpKind kind, int64_t l, int64_t keys_of,
                                        std::vector<Operand> reads, std::vector<Operand> writes,
                                        bool recompute) {
  const Plan& plan = builder_.plan();
  Op op = row_op(kind, l, 0, std::move(reads), std::move(writes));
  op.site = attention_site;
  op.peer = plan.grid.context > 1 ? static_cast<int32_t>(keys_of) : -1;
  op.flops_a_row = (kind == OpKind::attention_forward ? 4.0 : 8.0) *
                   static_cast<double>(plan.T_local()) * static_cast<double>(s_.H * s_.D);
  op.recompute = recompute;
  builder_.emit(op);
}

void ChunkPrograms::emit_of_attention(Op op) {
  op.region = Region::attention;
  builder_.emit(std::move(op));
}

// This rank's own keys and values set out.
void ChunkPrograms::start_ring(int64_t l, const LayerActivations& a) {
  const int64_t width = 2 * s_.H_kv * s_.D;
  emit_of_attention(convert_rows(l, width, {a.qkv, s_.H * s_.D}, s_.qkv(), {ring_.kv[0]}, width));
  pass_on(l, keys_and_values, ring_.kv[0], ring_.kv[1]);
}

// q and k stand side by side at the start of each row: their heads are turned in one go.
void ChunkPrograms::emit_rotary(OpKind kind, int64_t l, Operand qkv, bool recompute) {
  if (s_.family.positions != PositionKind::rotary) return;
  Op op = row_op(kind, l, s_.qkv(), {}, {qkv});
  op.recompute = recompute;
  builder_.emit(op);
}

void ChunkPrograms::emit_attention_forward(int64_t l, const LayerActivations& a, bool recompute) {
  emit_rotary(OpKind::rotary_forward, l, {a.qkv}, recompute);
  const int64_t ranks = builder_.plan().grid.context;
  const Operand q{a.qkv}, kv{a.qkv, s_.H * s_.D};
  const Operand out{ring_.out >= 0 ? ring_.out : a.attention};
  const auto step = [&](int64_t keys_of, Operand keys) {
    emit_attention_step(OpKind::attention_forward, l, keys_of, {q, keys, {builder_.plan().lengths}},
                        {out, {a.lse}}, recompute);
  };
  if (ranks == 1) return step(0, kv);
  start_ring(l, a);
  step(ring_neighbour(0), kv);
  for (int64_t i = 1; i < ranks; ++i) {
    if (i + 1 < ranks) pass_on(l, keys_and_values, ring_.kv[i % 2], ring_.kv[(i + 1) % 2]);
    step(ring_neighbour(-i), {ring_.kv[i % 2]});
  }
  if (ring_.out >= 0)
    emit_of_attention(convert_rows(l, s_.H * s_.D, out, s_.H * s_.D, {a.attention}, s_.H * s_.D));
}

// The first block sets out before the gradient at the attention's output is formed.
void ChunkPrograms::begin_attention_backward(int64_t l, const LayerActivations& a) {
  if (builder_.plan().grid.context > 1) start_ring(l, a);
}

void ChunkPrograms::emit_attention_backward(int64_t l, const LayerActivations& a, Operand dqkv) {
  emit_attention_gradients(l, a, dqkv);
  emit_rotary(OpKind::rotary_backward, l, dqkv, false);
}

// The gradient of a block of keys sets out from the rank after its owner, each rank adds its share
// to what arrives, and the owner adds its own last: while that is formed the sum of the others
// comes home.
void ChunkPrograms::emit_attention_gradients(int64_t l, const LayerActivations& a, Operand dqkv) {
  const int64_t ranks = builder_.plan().grid.context;
  const Operand q{a.qkv}, kv{a.qkv, s_.H * s_.D};
  const auto step = [&](int64_t keys_of, Operand keys, Operand dq, Operand dkv) {
    emit_attention_step(OpKind::attention_backward, l, keys_of,
                        {{dattention_}, q, keys, {a.attention}, {a.lse}, {builder_.plan().lengths}},
                        {dq, dkv}, false);
  };
  if (ranks == 1) return step(0, kv, dqkv, {dqkv.buffer, dqkv.offset + s_.H * s_.D});

  const int64_t width = 2 * s_.H_kv * s_.D;
  const auto zero = [&](int buffer, int64_t columns) {
    emit_of_attention(row_op(OpKind::fill_zero, l, columns, {}, {{buffer}}));
  };
  zero(ring_.dq, s_.H * s_.D);
  for (int64_t i = 1; i <= ranks; ++i) {
    const int dkv = ring_.dkv[i % 2];
    if (i + 1 < ranks) pass_on(l, keys_and_values, ring_.kv[i % 2], ring_.kv[(i + 1) % 2]);
    zero(dkv, width);
    step(ring_neighbour(-i), i < ranks ? Operand{ring_.kv[i % 2]} : kv, {ring_.dq}, {dkv});
    if (i > 1)
      emit_of_attention(row_op(OpKind::accumulate, l, width, {{ring_.dkv_arriving}}, {{dkv}}));
    if (i < ranks) pass_on(l, their_gradients, dkv, ring_.dkv_arriving);
  }
  const auto into_dqkv = [&](int from, int64_t columns, int64_t offset) {
    emit_of_attention(
        convert_rows(l, columns, {from}, columns, {dqkv.buffer, dqkv.offset + offset}, s_.qkv()));
  };
  into_dqkv(ring_.dq, s_.H * s_.D, 0);
  into_dqkv(ring_.dkv[ranks % 2], width, s_.H * s_.D);
}

}  // namespace gptbench
