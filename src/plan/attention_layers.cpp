#include "plan/attention_layers.h"

#include "base/units.h"

namespace gptbench {
namespace {

enum RingTag : int { keys_and_values = 0, their_gradients = 1 };

}  // namespace

AttentionLayers::AttentionLayers(const StageBuilder& stage, const ResidualStream& stream)
    : stage_(stage), s_(stage.s), ranks_(stage.plan.grid.context), dattention_(stream.dattention) {
  if (ranks_ == 1) return;
  const DType A = stage.builder.A(), S = stage.builder.S();
  const auto travelling = [&](const std::string& name, DType dtype) {
    return stage.builder.shared_buffer(
        "ring." + name, MemoryClass::communication, dtype,
        checked_product(stage.plan.micro_batches.rows, 2 * s_.H_kv * s_.D, "keys and values"));
  };
  for (const size_t i : {0, 1}) {
    kv_[i] = travelling("kv." + std::to_string(i), A);
    dkv_[i] = travelling("dkv." + std::to_string(i), S);
  }
  dkv_arriving_ = travelling("dkv.arriving", S);
  dq_ = stage.temporary("dq", S, s_.H * s_.D);
  if (A != S) out_ = stage.temporary("attention_sum", S, s_.H * s_.D);
}

// Rank at a distance along the ring.
int64_t AttentionLayers::neighbour(int64_t distance) const {
  return (stage_.plan.at.context + distance + ranks_) % ranks_;
}

// Sends block `from` to the next rank of the ring and receives that of the previous one in `to`.
void AttentionLayers::pass_on(int64_t l, int tag, int from, int to) const {
  const DType dtype = stage_.plan.buffers[static_cast<size_t>(from)].dtype;
  MessageSize message{per_row(2 * s_.H_kv * s_.D), size_of(dtype)};
  message.tag = tag;
  message.peer = static_cast<int32_t>(neighbour(+1));
  stage_.emit(ops::send({QueueId::send_context, Axis::context}, message, {from}, {l}));
  message.peer = static_cast<int32_t>(neighbour(-1));
  stage_.emit(ops::receive({QueueId::receive_context, Axis::context}, message, {to}, {l}));
}

// Queries of this rank against the keys of one rank of the context axis. Backward all blocks add to
// gradients that begin at zero.
AttentionSize AttentionLayers::size(int64_t keys_of, bool forward) const {
  if (ranks_ == 1) return {};
  return {static_cast<int32_t>(keys_of), !forward || keys_of != stage_.plan.at.context};
}

// FLOPs are counted as if nothing were masked: a share of T / c keys for each query, whatever part
// of the block is formed.
double AttentionLayers::flops_per_row(bool forward) const {
  return (forward ? 4.0 : 8.0) * static_cast<double>(stage_.plan.T_local()) *
         static_cast<double>(s_.H * s_.D);
}

// Rotary positions turn q and k, which stand side by side at the start of each row, in one go.
int64_t AttentionLayers::turned_columns() const {
  return (s_.H + s_.H_kv) * s_.D;
}

// This rank's own keys and values are sent first.
void AttentionLayers::start_ring(int64_t l, const LayerActivations& a) const {
  const int64_t width = 2 * s_.H_kv * s_.D;
  stage_.emit_in(Region::attention, ops::convert({per_row(width), s_.qkv(), width},
                                                 {a.qkv, s_.H * s_.D}, {kv_[0]}, {l}));
  pass_on(l, keys_and_values, kv_[0], kv_[1]);
}

// The block that is worked on in a step of the ring travels on, unless that is the last.
void AttentionLayers::pass_keys_on(int64_t l, int64_t step) const {
  if (step + 1 < ranks_) pass_on(l, keys_and_values, kv_[step % 2], kv_[(step + 1) % 2]);
}

void AttentionLayers::emit_forward(int64_t l, const LayerActivations& a, bool repeats) const {
  if (s_.family.positions == PositionEmbedding::rotary)
    stage_.emit(ops::row_op(OpKind::rotary_forward, {l}, turned_columns(), {{Slot::x, {a.qkv}}}),
                repeats);
  const Operand q{a.qkv}, kv{a.qkv, s_.H * s_.D}, out{out_ >= 0 ? out_ : a.attention};
  const auto step = [&](int64_t keys_of, Operand keys) {
    Op op = ops::attention_forward({l}, size(keys_of, true), flops_per_row(true),
                                   {q, keys, {stage_.plan.buffer_index.lengths}, out, {a.lse}});
    op.site = attention_site;
    stage_.emit(op, repeats);
  };
  if (ranks_ == 1) return step(0, kv);
  start_ring(l, a);
  step(neighbour(0), kv);
  for (int64_t i = 1; i < ranks_; ++i) {
    pass_keys_on(l, i);
    step(neighbour(-i), {kv_[i % 2]});
  }
  if (out_ >= 0)
    stage_.emit_in(Region::attention,
                   ops::convert({per_row(s_.H * s_.D)}, out, {a.attention}, {l}));
}

void AttentionLayers::begin_backward(int64_t l, const LayerActivations& a) const {
  if (ranks_ > 1) start_ring(l, a);
}

void AttentionLayers::emit_backward(int64_t l, const LayerActivations& a, Operand dqkv) const {
  emit_gradients(l, a, dqkv);
  if (s_.family.positions == PositionEmbedding::rotary)
    stage_.emit(ops::row_op(OpKind::rotary_backward, {l}, turned_columns(), {{Slot::dx, dqkv}}));
}

// The rank after a block's owner starts its gradient, each rank adds its share to what arrives, and
// the owner adds its own last: while it forms that, the sum of the others is in flight to it.
void AttentionLayers::emit_gradients(int64_t l, const LayerActivations& a, Operand dqkv) const {
  const Operand q{a.qkv}, kv{a.qkv, s_.H * s_.D};
  const auto step = [&](int64_t keys_of, Operand keys, Operand dq, Operand dkv) {
    Op op = ops::attention_backward(
        {l}, size(keys_of, false), flops_per_row(false),
        {q, keys, {stage_.plan.buffer_index.lengths}, {a.attention}, {a.lse}},
        {{dattention_}, dq, dkv});
    op.site = attention_site;
    stage_.emit(op);
  };
  if (ranks_ == 1) return step(0, kv, dqkv, {dqkv.buffer, dqkv.offset + s_.H * s_.D});

  const int64_t width = 2 * s_.H_kv * s_.D;
  const auto emit = [&](const Op& op) { stage_.emit_in(Region::attention, op); };
  emit(ops::fill_zero(per_row(s_.H * s_.D), {dq_}, {l}));
  for (int64_t i = 1; i <= ranks_; ++i) {
    const int dkv = dkv_[i % 2];
    pass_keys_on(l, i);
    emit(ops::fill_zero(per_row(width), {dkv}, {l}));
    step(neighbour(-i), i < ranks_ ? Operand{kv_[i % 2]} : kv, {dq_}, {dkv});
    if (i > 1) emit(ops::accumulate(per_row(width), {dkv_arriving_}, {dkv}, {l}));
    if (i < ranks_) pass_on(l, their_gradients, dkv, dkv_arriving_);
  }
  const auto into_dqkv = [&](int from, int64_t columns, int64_t offset) {
    emit(ops::convert({per_row(columns), columns, s_.qkv()}, {from},
                      {dqkv.buffer, dqkv.offset + offset}, {l}));
  };
  into_dqkv(dq_, s_.H * s_.D, 0);
  into_dqkv(dkv_[ranks_ % 2], width, s_.H * s_.D);
}

}  // namespace gptbench
