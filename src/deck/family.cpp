#include "deck/family.h"

#include "base/units.h"

namespace gptbench {

std::string position_embedding_of(const ModelConfig& model) {
  if (model.position_embedding != "auto") return model.position_embedding;
  return model.family == "llama" ? "rotary" : "learned";
}

int64_t ffn_hidden_size_of(const ModelConfig& model) {
  if (model.ffn_hidden_size != 0) return model.ffn_hidden_size;
  if (model.family == "llama") return round_up(ceil_div(8 * model.hidden_size, 3), 256);
  return 4 * model.hidden_size;
}

bool has_biases(const ModelConfig& model) {
  return model.family != "llama" && !model.no_bias;
}

}  // namespace gptbench
