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
  MessageSize message{per_row(2 * s_.H_kv * s_.D), size_of(dtype)};
  message.tag = tag;
  message.peer = static_cast<int32_t>(ring_neighbour(+1));
  builder_.emit(ops::send({QueueId::send_context, Axis::context}, message, {from}, {l}));
  message.peer = static_cast<int32_t>(ring_neighbour(-1));
  builder_.emit(ops::receive({QueueId::receive_context, Axis::context}, message, {to}, {l}));
}

// Queries of this rank against the keys of one rank of the context axis. Backward all blocks add to
// gradients that begin at zero.
AttentionSize ChunkPrograms::attention_size(int64_t keys_of, bool forward) const {
  const Plan& plan = builder_.plan();
  AttentionSize size;
  if (plan.grid.context == 1) return size;
  size.keys_of = static_cast<int32_t>(keys_of);
  size.accumulate = !forward || keys_of != plan.at.context;
  return size;
}

// FLOPs are counted as if nothing were masked: a share of T / c keys for each query, whatever part
// of the block is formed.
double ChunkPrograms::attention_flops_per_row(bool forward) const {
  return (forward ? 4.0 : 8.0) * static_cast<double>(builder_.plan().T_local()) *
         static_cast<double>(s_.H * s_.D);
}

void ChunkPrograms::emit_of_attention(Op op) {
  op.region = Region::attention;
  builder_.emit(std::move(op));
}

// This rank's own keys and values set out.
void ChunkPrograms::start_ring(int64_t l, const LayerActivations& a) {
  const int64_t width = 2 * s_.H_kv * s_.D;
  emit_of_attention(
      ops::convert({per_row(width), s_.qkv(), width}, {a.qkv, s_.H * s_.D}, {ring_.kv[0]}, {l}));
  pass_on(l, keys_and_values, ring_.kv[0], ring_.kv[1]);
}

void ChunkPrograms::emit_attention_forward(int64_t l, const LayerActivations& a, bool recompute) {
  // q and k stand side by side at the start of each row: their heads are rotated in one go.
  if (s_.family.positions == PositionEmbedding::rotary) {
    Op op = ops::rotary_forward({l}, s_.qkv(), {a.qkv});
    op.recompute = recompute;
    builder_.emit(op);
  }
  const int64_t ranks = builder_.plan().grid.context;
  const Operand q{a.qkv}, kv{a.qkv, s_.H * s_.D};
  const Operand out{ring_.out >= 0 ? ring_.out : a.attention};
  const auto step = [&](int64_t keys_of, Operand keys) {
    Op op =
        ops::attention_forward({l}, attention_size(keys_of, true), attention_flops_per_row(true),
                               {q, keys, {builder_.plan().lengths}, out, {a.lse}});
    op.site = attention_site;
    op.recompute = recompute;
    builder_.emit(op);
  };
  if (ranks == 1) return step(0, kv);
  start_ring(l, a);
  step(ring_neighbour(0), kv);
  for (int64_t i = 1; i < ranks; ++i) {
    if (i + 1 < ranks) pass_on(l, keys_and_values, ring_.kv[i % 2], ring_.kv[(i + 1) % 2]);
    step(ring_neighbour(-i), {ring_.kv[i % 2]});
  }
  if (ring_.out >= 0)
    emit_of_attention(ops::convert({per_row(s_.H * s_.D)}, out, {a.attention}, {l}));
}

// The first block sets out before the gradient at the attention's output is formed.
void ChunkPrograms::begin_attention_backward(int64_t l, const LayerActivations& a) {
  if (builder_.plan().grid.context > 1) start_ring(l, a);
}

void ChunkPrograms::emit_attention_backward(int64_t l, const LayerActivations& a, Operand dqkv) {
  emit_attention_gradients(l, a, dqkv);
  if (s_.family.positions == PositionEmbedding::rotary)
    builder_.emit(ops::rotary_backward({l}, s_.qkv(), dqkv));
}

// The gradient of a block of keys sets out from the rank after its owner, each rank adds its share
// to what arrives, and the owner adds its own last: while that is formed the sum of the others
// comes home.
void ChunkPrograms::emit_attention_gradients(int64_t l, const LayerActivations& a, Operand dqkv) {
  const int64_t ranks = builder_.plan().grid.context;
  const Operand q{a.qkv}, kv{a.qkv, s_.H * s_.D};
  const auto step = [&](int64_t keys_of, Operand keys, Operand dq, Operand dkv) {
    Op op = ops::attention_backward(
        {l}, attention_size(keys_of, false), attention_flops_per_row(false),
        {q, keys, {builder_.plan().lengths}, {a.attention}, {a.lse}}, {{dattention_}, dq, dkv});
    op.site = attention_site;
    builder_.emit(op);
  };
  if (ranks == 1) return step(0, kv, dqkv, {dqkv.buffer, dqkv.offset + s_.H * s_.D});

  const int64_t width = 2 * s_.H_kv * s_.D;
  const auto zero = [&](int buffer, int64_t columns) {
    emit_of_attention(ops::fill_zero(per_row(columns), {buffer}, {l}));
  };
  zero(ring_.dq, s_.H * s_.D);
  for (int64_t i = 1; i <= ranks; ++i) {
    const int dkv = ring_.dkv[i % 2];
    if (i + 1 < ranks) pass_on(l, keys_and_values, ring_.kv[i % 2], ring_.kv[(i + 1) % 2]);
    zero(dkv, width);
    step(ring_neighbour(-i), i < ranks ? Operand{ring_.kv[i % 2]} : kv, {ring_.dq}, {dkv});
    if (i > 1) emit_of_attention(ops::accumulate(per_row(width), {ring_.dkv_arriving}, {dkv}, {l}));
    if (i < ranks) pass_on(l, their_gradients, dkv, ring_.dkv_arriving);
  }
  const auto into_dqkv = [&](int from, int64_t columns, int64_t offset) {
    emit_of_attention(ops::convert({per_row(columns), columns, s_.qkv()}, {from},
                                   {dqkv.buffer, dqkv.offset + offset}, {l}));
  };
  into_dqkv(ring_.dq, s_.H * s_.D, 0);
  into_dqkv(ring_.dkv[ranks % 2], width, s_.H * s_.D);
}

}  // namespace gptbench
