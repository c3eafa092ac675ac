#include "plan/embedding_layer.h"

namespace gptbench {

EmbeddingLayer::EmbeddingLayer(const StageBuilder& stage, const ResidualStream& stream)
    : stage_(stage),
      stream_(stream),
      token_unit_(stage.plan.space.find_unit(UnitKind::token_embedding)),
      position_unit_(stage.plan.space.find_unit(UnitKind::position_embedding)),
      wte_(stage.builder.tensor("wte")),
      wpe_(stage.builder.find_tensor("wpe")),
      wtt_(stage.builder.find_tensor("wtt")) {}

void EmbeddingLayer::gather() const {
  stage_.weights.gather(token_unit_);
  stage_.weights.gather(position_unit_);
}

void EmbeddingLayer::emit_forward(Operand x0) const {
  const Plan& plan = stage_.plan;
  stage_.emit(ops::load_tokens(-1, {plan.buffer_index.tokens}, {plan.buffer_index.targets},
                               {plan.buffer_index.token_types}));
  // Each rank looks up the tokens of its part of the vocabulary; one adds positions and types.
  const Operand partial = stage_.sp > 1 ? Operand{stream_.branch} : x0;
  const bool adds = plan.at.tensor == 0;
  const Operand token = stage_.weights.of(wte_), none;
  const Operand position = adds ? stage_.weights.of(wpe_) : none;
  const Operand type = adds ? stage_.weights.of(wtt_) : none;
  stage_.emit(ops::embedding_forward(stage_.s.C, {plan.buffer_index.tokens},
                                     adds ? Operand{plan.buffer_index.token_types} : none,
                                     {token, position, type}, partial));
  stage_.reduce(-1, partial, x0.buffer);
  if (plan.config.model.dropout > 0.0)
    stage_.emit(ops::residual_forward({-1, stage_.sp}, embedding_site, stage_.s.C, {}, x0, x0));
}

void EmbeddingLayer::emit_backward(const Pass& pass) const {
  if (!pass.weights) return;
  if (!stage_.shares_table()) stage_.gradients.open(token_unit_);  // else the head has opened it
  stage_.gradients.open(position_unit_);
  const Operand dx = stage_.to_full(
      -1, stage_.dropout_backward(-1, embedding_site, {stream_.dx}, stream_.ddropped),
      stream_.dfull);
  stage_.emit(ops::embedding_backward(
      stage_.s.C, dx, {stage_.plan.buffer_index.tokens}, {stage_.plan.buffer_index.token_types},
      {stage_.gradients.of(wte_), stage_.gradients.of(wpe_), stage_.gradients.of(wtt_)}));
  stage_.gradients.close(position_unit_, pass.last);
  stage_.gradients.close(token_unit_, pass.last);
}

}  // namespace gptbench
