#include "deck/family.h"

#include "base/units.h"
#include "deck/config.h"

namespace gptbench {

int64_t ffn_4C(int64_t C) {
  return 4 * C;
}

int64_t ffn_8C_over_3(int64_t C) {
  return round_up(ceil_div(8 * C, 3), 256);
}

const FamilyRow& family_row(ModelFamily family) {
#define GPTBENCH_FAMILY_ROW(name, ...) {__VA_ARGS__},
  static const FamilyRow rows[] = {GPTBENCH_FAMILIES(GPTBENCH_FAMILY_ROW)};
  return rows[static_cast<size_t>(family)];
}

Family family_of(const ModelConfig& model) {
  const FamilyRow& row = family_row(model.family);
  const bool is_default = model.position_embedding == PositionEmbedding::auto_;
  Family family;
  family.norm = row.norm;
  family.positions = is_default ? row.positions.front() : model.position_embedding;
  family.activation = row.activation;
  family.biases = row.biases != Biases::none && !model.no_bias;
  family.causal = row.attention == Attention::causal;
  family.head = row.head;
  family.token_types = row.token_types;
  return family;
}

int64_t ffn_hidden_size_of(const ModelConfig& model) {
  if (model.ffn_hidden_size != 0) return model.ffn_hidden_size;
  return family_row(model.family).ffn_hidden_size(model.hidden_size);
}

}  // namespace gptbench
