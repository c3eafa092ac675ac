// The embedding of a virtual stage: tokens, positions and types of segments. Internal to the plan
// layer.
#pragma once

#include "plan/stage_builder.h"

namespace gptbench {

class EmbeddingLayer {
 public:
  EmbeddingLayer(const StageBuilder& stage, const ResidualStream& stream);

  void gather() const;
  // To x0, the input of the first layer.
  void emit_forward(Operand x0) const;
  // From stream.dx to the gradients of the tables.
  void emit_backward(const Pass& pass) const;

 private:
  const StageBuilder& stage_;
  const ResidualStream& stream_;
  int token_unit_, position_unit_;
  int wte_, wpe_, wtt_;  // tables of tokens, positions and types; -1: the family has none
};

}  // namespace gptbench
