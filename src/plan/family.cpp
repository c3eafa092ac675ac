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
    family.tied_head = false;
  }
  return family;
}

}  // namespace gptbench
