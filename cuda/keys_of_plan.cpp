// Keys of the GEMMs and attention calls of a step, for the searches before the first
// step.
#include <set>

#include "cuda/attention_key.h"
#include "cuda/gemm_description.h"
#include "plan/tasks.h"

namespace gptbench {

std::vector<GemmKey> gemms_of(const Plan& plan) {
  std::set<GemmKey> keys;
  for_each_operation(plan, [&](int32_t i, int64_t rows, int64_t /*times*/) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    if (spec_of(op.kind).sizes != SizeGroup::gemm) return;
    GemmKey key;
    key.R = rows_of(op, rows);
    key.K = op.as<GemmSize>().K;
    key.N = op.as<GemmSize>().N;
    key.op = op.has(Slot::dweight) ? GemmOp::backward_weight
             : op.has(Slot::dx)    ? GemmOp::backward_input
                                   : GemmOp::forward;
    key.bias = op.has(Slot::bias) || op.has(Slot::dbias);
    key.gelu = op.has(Slot::activation) || op.has(Slot::pre);
    const Slot left = key.op == GemmOp::forward ? Slot::x : Slot::dy;
    key.type = plan.buffers[static_cast<size_t>(op[left].buffer)].dtype;
    if (key.R > 0) keys.insert(key);
  });
  return {keys.begin(), keys.end()};
}

std::vector<AttentionKey> attentions_of(const Plan& plan) {
  const ModelShape& s = plan.local;
  std::set<AttentionKey> keys;
  const bool alibi = s.family.positions == PositionEmbedding::alibi;
  if (plan.config.model.dropout > 0.0 || plan.grid.context > 1 || (alibi && !s.family.causal))
    return {};
  for_each_operation(plan, [&](int32_t i, int64_t rows, int64_t /*times*/) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    if (op.kind != OpKind::attention_forward && op.kind != OpKind::attention_backward) return;
    AttentionKey key;
    key.backward = op.kind == OpKind::attention_backward;
    key.type = plan.buffers[static_cast<size_t>(op[Slot::q].buffer)].dtype;
    key.B = rows / plan.T_local();
    key.T = plan.shape.T;
    key.H = s.H;
    key.H_kv = s.H_kv;
    key.D = s.D;
    key.q_row = key.kv_row = s.qkv();
    key.out_row = s.H * s.D;
    key.causal = s.family.causal;
    key.padded = plan.buffer_index.lengths >= 0;
    key.alibi = alibi;
    if (key.B > 0 && fits_library(key.type, key.H, key.H_kv, key.D)) keys.insert(key);
  });
  return {keys.begin(), keys.end()};
}

}  // namespace gptbench
