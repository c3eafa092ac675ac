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

enum class HeadKind : uint8_t {
  tied,    // rows of the token embedding
  untied,  // a table of its own
  masked   // a transform, then the token embedding; beside it the next-sentence head
};

struct Family {
  NormKind norm = NormKind::layernorm;
  PositionKind positions = PositionKind::learned;
  ActivationKind activation = ActivationKind::gelu;
  bool biases = true;  // of linear layers and LayerNorm
  bool causal = true;  // positions see none behind them
  HeadKind head = HeadKind::tied;
  int64_t token_types = 0;  // kinds of segments that have an embedding
  bool shares_embedding() const { return head != HeadKind::untied; }
};

// Masked tokens of a sequence of T in all: 15% (Devlin et al., arXiv:1810.04805), rounded, at least
// one. The length alone says how many, so that every rank knows the weight of a row without asking
// the others.
constexpr int64_t masked_tokens_of(int64_t T) {
  return T < 10 ? 1 : (3 * T + 10) / 20;
}

// Throws nothing: the deck layer has refused what a family does not have.
//   gpt    LayerNorm, learned, GELU, biases, tied          (Radford et al. 2019)
//   mpt    the same; ALiBi and no biases where asked for    (MosaicML llm-foundry)
//   bert   as gpt, but not causal, with token types and the masked-token and next-sentence heads
//          (Devlin et al., arXiv:1810.04805; LayerNorm before the branches as in Megatron-LM,
//          arXiv:1909.08053, section 5.3)
//   llama  RMSNorm, rotary, SwiGLU, no biases, untied       (Touvron et al., arXiv:2302.13971)
Family family_of(const ModelConfig& model);

}  // namespace gptbench
