// The parts of the head of BERT beside the decoder (Devlin et al., arXiv:1810.04805; arranged as in
// Megatron-LM). Masked tokens are predicted by a dense layer, GELU and LayerNorm before the tied
// decoder; whether the second segment follows the first by a pooler (tanh of a dense layer) of each
// sequence's first position and two classes. Under sequence parallelism a rank works on its own
// rows, and on the sequences whose first position is among them: neither needs a message. Internal
// to the plan layer.
#pragma once

#include "plan/stage_builder.h"

namespace gptbench {

// Input of the decoder, and its gradient: this rank's rows [R, C] under sequence
// parallelism, then all rows.
struct DecoderInput {
  int x = -1, dx = -1;
  int x_full = -1, dx_full = -1;  // -1 without sequence parallelism
};

class MaskedTokenHead {
 public:
  // Adds the buffers to the plan. ln_f: [R, C] the final norm's output, and its gradient dln_f.
  MaskedTokenHead(const StageBuilder& stage, int ln_f, int dln_f);

  int unit() const { return unit_; }                // of the parameters
  int logits_bias() const { return logits_bias_; }  // tensor
  const DecoderInput& decoder_input() const { return decoder_; }

  // From the final norm's output to the decoder's input.
  void emit_transform() const;
  // The loss of the next sentence and its gradients, to that at the first positions.
  void emit_next_sentence() const;
  // From the gradient at the decoder's input to that at the final norm's output, to which the first
  // positions' is added. Completes the gradient of the head's parameters.
  void emit_transform_backward() const;

 private:
  struct Dense {
    int weight, bias;
  };
  Dense find_dense(const char* name) const;
  void emit_of_sequences(Op op) const;

  const StageBuilder& stage_;
  int ln_f_, dln_f_, unit_, logits_bias_;
  Dense dense_, pooler_, classes_;  // tensors
  Norm norm_;
  DecoderInput decoder_;
  int dense_out_, gelu_, dgelu_;                                 // [R, C]
  int first_, pooled_, dpooled_, dfirst_, logits_, statistics_;  // a row per sequence
};

}  // namespace gptbench
