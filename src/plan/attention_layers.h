// Attention of the layers of a virtual stage: of whole sequences in one operation, or of the
// positions that a rank of the context axis holds as a ring (Liu et al., arXiv:2310.01889). Blocks
// of keys and values go from rank to rank, each in flight while the one before it is worked on;
// backward their gradients follow them and end with their owner. Internal to the plan layer.
#pragma once

#include "plan/activation_store.h"

namespace gptbench {

class AttentionLayers {
 public:
  // Adds the buffers of the ring, where the context axis has ranks.
  AttentionLayers(const StageBuilder& stage, const ResidualStream& stream);

  // From the queries, keys and values in a.qkv to a.attention.
  void emit_forward(int64_t l, const LayerActivations& a, bool repeats) const;
  // Backward begins early with what can travel while dattention is formed, and ends with all of
  // dqkv.
  void begin_backward(int64_t l, const LayerActivations& a) const;
  void emit_backward(int64_t l, const LayerActivations& a, Operand dqkv) const;

 private:
  AttentionSize size(int64_t keys_of, bool forward) const;
  double flops_per_row(bool forward) const;
  int64_t turned_columns() const;
  int64_t neighbour(int64_t distance) const;
  void start_ring(int64_t l, const LayerActivations& a) const;
  void pass_on(int64_t l, int tag, int from, int to) const;
  void pass_keys_on(int64_t l, int64_t step) const;
  void emit_gradients(int64_t l, const LayerActivations& a, Operand dqkv) const;

  const StageBuilder& stage_;
  const ModelShape& s_;
  int64_t ranks_;   // of the context axis
  int dattention_;  // [R, H D] gradient of the output
  // Rows of this rank's positions; keys and values side by side, as their gradients.
  int kv_[2] = {-1, -1};   // [R, 2 H_kv D] the block in hand, the block in flight (A)
  int dkv_[2] = {-1, -1};  // the gradient of the block in hand, of the one before in flight (S)
  int dkv_arriving_ = -1;  // (S)
  int dq_ = -1;            // [R, H D] (S)
  int out_ = -1;           // [R, H D] (S); where A is S the attention's own output
};

}  // namespace gptbench
