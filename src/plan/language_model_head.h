// The output head of a virtual stage: final norm, decoder and loss. Internal to the plan layer.
#pragma once

#include <optional>

#include "plan/masked_token_head.h"

namespace gptbench {

// Logits are formed for a chunk of rows at a time (DeviceTraits::head_rows): those of a whole
// micro-batch would be the largest activation by far. The loss gradient of a chunk is formed at
// once, in the forward program, and its memory is used again by the next.
class LanguageModelHead {
 public:
  // Adds the buffers to the plan.
  LanguageModelHead(const StageBuilder& stage, const ResidualStream& stream);

  void gather() const;
  // The loss of stream.x_end and its gradient with respect to the final norm's output.
  void emit_forward() const;
  // To stream.dx, and the gradient of the final norm's parameters.
  // dx_sums: what sums over the rows of stream.dx are added to, or absent.
  void emit_backward(const Pass& pass, Operand dx_sums) const;

 private:
  // Logits of a block of rows of x, their loss and its gradient dx.
  void emit_rows(int64_t first, Operand x, Operand dx) const;

  const StageBuilder& stage_;
  const ResidualStream& stream_;
  int64_t rows_;                  // of a block
  int norm_unit_, unit_, table_;  // unit and tensor of the decoder's rows: wte where tied
  Norm norm_;                     // ln_f
  int ln_f_ = -1, dln_f_ = -1;    // [R, C] its output and the gradient, this rank's rows
  DecoderInput decoder_;          // ln_f, dln_f, or those of the masked-token head
  int logits_ = -1;               // [rows, V]
  // [3, rows] of this rank, of all tensor-parallel ranks.
  int statistics_ = -1, all_statistics_ = -1;
  std::optional<MaskedTokenHead> masked_;
};

}  // namespace gptbench
