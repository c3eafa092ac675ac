// What distinguishes the model families, as data: programs, cost and verification ask for these
// properties and never for a family's name.
#pragma once

#include <cstdint>

#include "deck/config.h"

namespace gptbench {

enum class NormKind : uint8_t { layernorm, rmsnorm };
enum class PositionKind : uint8_t {
  learned,  // a table added to the embedding
  alibi,    // a bias of the attention scores, linear in the distance
  rotary    // queries and keys turned by an angle
};
enum class ActivationKind : uint8_t {
  gelu,   // F columns
  swiglu  // from 2F columns, gate and value, to F
};

struct Family {
  NormKind norm = NormKind::layernorm;
  PositionKind positions = PositionKind::learned;
  ActivationKind activation = ActivationKind::gelu;
  bool biases = true;     // of linear layers and LayerNorm
  bool causal = true;     // positions see none behind them
  bool tied_head = true;  // the output head reads the token embedding; else a table of its own
};

// Throws nothing: the deck layer has refused what a family does not have.
//   gpt    LayerNorm, learned, GELU, biases, tied          (Radford et al. 2019)
//   mpt    the same; ALiBi and no biases where asked for    (MosaicML llm-foundry)
//   llama  RMSNorm, rotary, SwiGLU, no biases, untied       (Touvron et al., arXiv:2302.13971)
Family family_of(const ModelConfig& model);

}  // namespace gptbench
