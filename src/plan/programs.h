// Makers of the programs of a step. Internal to the plan layer.
#pragma once

#include <vector>

#include "plan/builder.h"

namespace gptbench {

// Rows of the head that are turned into logits at a time: the logits of a whole micro-batch would
// be the largest activation by far. The loss gradient of a chunk is formed at once, in the forward
// program, and the chunk's memory is used again by the next.
constexpr int64_t head_chunk_rows = 1024;

// Activations that live from forward to backward, and the operations of one transformer layer, the
// embedding and the head of the GPT-2 family (Radford et al. 2019; pre-LayerNorm).
class LayerPrograms {
 public:
  LayerPrograms(PlanBuilder& builder, int64_t slots);

  void emit_forward();
  // Emits the backward pass; after the operation that completes the gradients of a bucket,
  // `bucket_done(bucket index, operation index)` is called where not null.
  template <class BucketDone>
  void emit_backward(const std::string& name, BucketDone bucket_done) {
    const BackwardBuffers buffers = add_backward_buffers(name);
    emit_head_backward(buffers);
    const int64_t L = builder_.plan().shape.L;
    for (int64_t l = L - 1; l >= 0; --l)
      bucket_done(static_cast<int>(l + 1), emit_layer_backward(l, buffers));
    bucket_done(0, emit_embedding_backward(buffers));
  }

 private:
  struct LayerTensors {
    int ln_1_weight, ln_1_bias, qkv_weight, qkv_bias, attn_proj_weight, attn_proj_bias;
    int ln_2_weight, ln_2_bias, fc_weight, fc_bias, mlp_proj_weight, mlp_proj_bias;
  };
  struct LayerActivations {
    int x, ln_1, ln_1_mean, ln_1_rstd, qkv, attention, lse;
    int x_mid, ln_2, ln_2_mean, ln_2_rstd, fc, gelu;
  };
  struct BackwardBuffers {
    int dx, dbranch, dqkv, dattention, dfc;
  };

  BackwardBuffers add_backward_buffers(const std::string& name);
  void emit_layer_forward(int64_t l);
  void emit_head_forward();
  void emit_head_backward(const BackwardBuffers& buffers);
  int emit_layer_backward(int64_t l, const BackwardBuffers& buffers);
  int emit_embedding_backward(const BackwardBuffers& buffers);
  // dx through the dropout mask of `site`; dx itself where there is no dropout.
  Operand emit_dropout_backward(int64_t l, int32_t site, int dx, int dbranch);

  PlanBuilder& builder_;
  std::vector<LayerTensors> tensors_;
  std::vector<LayerActivations> activations_;
  int x_final_, ln_f_, ln_f_mean_, ln_f_rstd_, dln_f_;
  int ln_f_weight_, ln_f_bias_, wte_, wpe_;
  int branch_;  // output of a residual branch, forward
};

// Sites of dropout masks within a layer (kernels.h, Dropout::instance).
enum DropoutSite : int32_t { embedding_site = 0, attention_site = 1, proj_site = 2, mlp_site = 3 };

}  // namespace gptbench
