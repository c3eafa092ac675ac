// Attention operations.
#include "engine/engine.h"

namespace gptbench {

// qkv holds q, k and v side by side in each row.
void Engine::run_attention(const Op& op, const Task& task) {
  const ModelShape& s = plan_.local;
  const int64_t element = size_of(activation_type(compute_type(plan_.config)));
  const int64_t k_offset = s.H * s.D * element;
  const int64_t v_offset = (s.H + s.H_kv) * s.D * element;
  AttentionShape shape =
      whole_sequences(task.sequences.count, s.T, s.H, s.H_kv, s.D, s.qkv(), s.qkv(), s.H * s.D);
  shape.dropout = dropout_of(op, plan_.config.model.dropout);
  shape.first_sequence = task.sequences.first;
  shape.first_head = plan_.at.tensor * s.H;
  shape.H_global = plan_.shape.H;
  Queue& q = queue(op.queue);
  if (op.kind == OpKind::attention_forward) {
    const char* qkv = static_cast<const char*>(read_at(op, 0));
    kernels_.attention_forward(q, {write_at(op, 0), write_at(op, 1), qkv, qkv + k_offset,
                                   qkv + v_offset, shape, workspace()});
  } else {
    char* dqkv = static_cast<char*>(write_at(op, 0));
    const char* qkv = static_cast<const char*>(read_at(op, 1));
    kernels_.attention_backward(
        q, {dqkv, dqkv + k_offset, dqkv + v_offset, read_at(op, 0), qkv, qkv + k_offset,
            qkv + v_offset, read_at(op, 2), read_at(op, 3), shape, shape.q_row, shape.kv_row,
            shape.q_step, shape.kv_step, workspace()});
  }
}

}  // namespace gptbench
