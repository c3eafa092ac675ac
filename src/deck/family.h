// What a model's family decides where the deck leaves it open.
#pragma once

#include <cstdint>
#include <string>

#include "deck/config.h"

namespace gptbench {

// "learned", "alibi" or "rotary": position_embedding, or the family's where it is 'auto'.
std::string position_embedding_of(const ModelConfig& model);

// ffn_hidden_size, or the family's where it is 0: 4 hidden_size; of llama, whose feed-forward layer
// has three matrices, 8/3 hidden_size rounded up to a multiple of 256 (Touvron et al.,
// arXiv:2302.13971).
int64_t ffn_hidden_size_of(const ModelConfig& model);

// Whether linear layers and norms have biases.
bool has_biases(const ModelConfig& model);

}  // namespace gptbench
