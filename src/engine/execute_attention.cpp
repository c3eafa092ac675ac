// Attention.
#include "engine/handlers.h"
#include "plan/context.h"

namespace gptbench::handle {
namespace {

// Positions of the rows from `first` on.
Positions part_of(const Positions& all, int64_t first) {
  if (first < all.split) return {{all.begin[0] + first, all.begin[1]}, all.split - first};
  return {{all.begin[1] + first - all.split, 0}, INT64_MAX};
}

// Rank of the context axis whose keys these are.
int64_t keys_of(const OpCall& call) {
  const int32_t rank = call.op.as<AttentionSize>().keys_of;
  return rank >= 0 ? rank : call.plan().at.context;
}

AttentionBlock block_of(const OpCall& call) {
  const Plan& plan = call.plan();
  return attention_block(plan.shape.T, plan.grid.context, plan.at.context, keys_of(call),
                         plan.local.family.causal);
}

AttentionShape shape_of(const OpCall& call) {
  const Plan& plan = call.plan();
  const ModelShape& s = plan.local;
  const AttentionBlock block = block_of(call);
  // This rank's own keys and values lie beside its queries, those of others in blocks of their own.
  const bool beside = call.op[Slot::kv].buffer == call.op[Slot::q].buffer;
  const int64_t kv_row = beside ? s.qkv() : 2 * s.H_kv * s.D;
  AttentionShape shape = whole_sequences(call.task.sequences.count, plan.T_local(), s.H, s.H_kv,
                                         s.D, s.qkv(), kv_row, s.H * s.D);
  shape.T_q = block.queries;
  shape.T_k = block.keys;
  shape.causal = block.masked;
  shape.q_positions = part_of(call.positions(), block.first_query);
  shape.k_positions = part_of(call.positions_of(keys_of(call)), block.first_key);
  if (call.op.as<AttentionSize>().keys_of >= 0)
    shape.keys = keys_of(call) == plan.at.context ? KeyBlock::first : KeyBlock::further;
  shape.alibi = s.family.positions == PositionEmbedding::alibi;
  shape.lengths = call[Slot::lengths];
  shape.dropout = call.dropout();
  shape.global = {call.task.sequences.first, plan.at.tensor * s.H, plan.shape.H, plan.shape.T};
  return shape;
}

// Queries, keys and values, and the statistics of the block's queries.
template <class Arguments>
Arguments block_arguments(const OpCall& call, const AttentionBlock& block) {
  const ModelShape& s = call.plan().local;
  Arguments args{};
  args.shape = shape_of(call);
  args.q = call.address(Slot::q, block.first_query * args.shape.q.row);
  args.k = call.address(Slot::kv, block.first_key * args.shape.kv.row);
  args.v = call.address(Slot::kv, block.first_key * args.shape.kv.row + s.H_kv * s.D);
  args.out = call.address(Slot::out, block.first_query * args.shape.out.row);
  args.lse = call.address(Slot::lse, block.first_query);
  args.workspace = call.workspace();
  return args;
}

}  // namespace

void attention_forward(const OpCall& call) {
  call.kernels().attention_forward(call.queue(),
                                   block_arguments<AttentionForward>(call, block_of(call)));
}

void attention_backward(const OpCall& call) {
  const Plan& plan = call.plan();
  const ModelShape& s = plan.local;
  const AttentionBlock block = block_of(call);
  const bool in_blocks = call.op.as<AttentionSize>().keys_of >= 0;
  AttentionBackward args = block_arguments<AttentionBackward>(call, block);
  const int64_t dq_row = in_blocks ? s.H * s.D : s.qkv();
  const int64_t dkv_row = in_blocks ? 2 * s.H_kv * s.D : s.qkv();
  args.dq_strides = {dq_row, plan.T_local() * dq_row};
  args.dkv_strides = {dkv_row, plan.T_local() * dkv_row};
  args.dq = call.address(Slot::dq, block.first_query * dq_row);
  args.dk = call.address(Slot::dkv, block.first_key * dkv_row);
  args.dv = call.address(Slot::dkv, block.first_key * dkv_row + s.H_kv * s.D);
  args.dout = call.address(Slot::dout, block.first_query * args.shape.out.row);
  call.kernels().attention_backward(call.queue(), args);
}

}  // namespace gptbench::handle
