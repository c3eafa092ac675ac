#include "plan/family.h"

#include "deck/family.h"

namespace gptbench {

Family family_of(const ModelConfig& model) {
  Family family;
  const std::string positions = position_embedding_of(model);
  family.positions = positions == "alibi"    ? PositionKind::alibi
                     : positions == "rotary" ? PositionKind::rotary
                                             : PositionKind::learned;
  family.biases = has_biases(model);
  if (model.family == "llama") {
    family.norm = NormKind::rmsnorm;
    family.activation = ActivationKind::swiglu;
    family.head = HeadKind::untied;
  }
  if (model.family == "bert") {
    family.causal = false;
    family.head = HeadKind::masked;
    family.token_types = 2;
  }
  return family;
}

}  // namespace gptbench
