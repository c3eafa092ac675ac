// The model families, one row each: the only place that knows them by name. Programs, cost, checks
// and verification ask for these properties.
#pragma once

#include <cstdint>

#include "base/choice.h"

namespace gptbench {

struct ModelConfig;

enum class NormKind : uint8_t { layernorm, rmsnorm };

// auto_: that of the family.
//   learned  a table added to the embedding
//   alibi    a bias of the attention scores, linear in the distance
//   rotary   queries and keys rotated by an angle
GPTBENCH_CHOICE(PositionEmbedding, auto_, learned, alibi, rotary)

enum class ActivationKind : uint8_t {
  gelu,   // F columns
  swiglu  // from 2F columns, gate and value, to F
};
enum class HeadKind : uint8_t {
  tied,    // rows of the token embedding
  untied,  // a table of its own
  masked   // a transform, then the token embedding; beside it the next-sentence head
};
// Biases of linear layers and norms. optional: unless model.no_bias; none: whatever it says.
enum class Biases : uint8_t { required, optional, none };
enum class Attention : uint8_t { causal, bidirectional };

// Width F of the feed-forward layer where the deck leaves it open. The second is for layers of
// three matrices: 8/3 C, rounded up to a multiple of 256 (Touvron et al., arXiv:2302.13971).
int64_t ffn_4C(int64_t C);
int64_t ffn_8C_over_3(int64_t C);

// name, norm, activation, feed-forward width, biases, head, attention, kinds of segments that have
// an embedding, position embeddings (the first is the default)
//   gpt    Radford et al. 2019
//   bert   Devlin et al., arXiv:1810.04805; LayerNorm before the branches as in Megatron-LM,
//          arXiv:1909.08053, section 5.3
//   mpt    MosaicML llm-foundry
//   llama  Touvron et al., arXiv:2302.13971
#define GPTBENCH_FAMILIES(FAMILY)                                                                  \
  FAMILY(gpt, NormKind::layernorm, ActivationKind::gelu, ffn_4C, Biases::required, HeadKind::tied, \
         Attention::causal, 0, {PositionEmbedding::learned})                                       \
  FAMILY(bert, NormKind::layernorm, ActivationKind::gelu, ffn_4C, Biases::required,                \
         HeadKind::masked, Attention::bidirectional, 2, {PositionEmbedding::learned})              \
  FAMILY(mpt, NormKind::layernorm, ActivationKind::gelu, ffn_4C, Biases::optional, HeadKind::tied, \
         Attention::causal, 0, {PositionEmbedding::learned, PositionEmbedding::alibi})             \
  FAMILY(llama, NormKind::rmsnorm, ActivationKind::swiglu, ffn_8C_over_3, Biases::none,            \
         HeadKind::untied, Attention::causal, 0, {PositionEmbedding::rotary})

#define GPTBENCH_FAMILY_NAME(name, ...) name,
GPTBENCH_CHOICE(ModelFamily, GPTBENCH_FAMILIES(GPTBENCH_FAMILY_NAME))

struct FamilyRow {
  NormKind norm;
  ActivationKind activation;
  int64_t (*ffn_hidden_size)(int64_t C);
  Biases biases;
  HeadKind head;
  Attention attention;
  int64_t token_types;
  std::vector<PositionEmbedding> positions;
};
const FamilyRow& family_row(ModelFamily family);

// A row with what the deck chooses of it.
struct Family {
  NormKind norm = NormKind::layernorm;
  PositionEmbedding positions = PositionEmbedding::learned;
  ActivationKind activation = ActivationKind::gelu;
  bool biases = true;  // of linear layers and norms
  bool causal = true;  // positions see none behind them
  HeadKind head = HeadKind::tied;
  int64_t token_types = 0;  // kinds of segments that have an embedding
  bool shares_embedding() const { return head != HeadKind::untied; }
};
// Throws nothing: validate() refuses what a family does not have.
Family family_of(const ModelConfig& model);

// ffn_hidden_size, or the family's where it is 0.
int64_t ffn_hidden_size_of(const ModelConfig& model);

// Masked tokens of a sequence of T in all: 15% (Devlin et al., arXiv:1810.04805), rounded, at least
// one. The length alone says how many, so that every rank knows the weight of a row without asking
// the others.
constexpr int64_t masked_tokens_of(int64_t T) {
  return T < 10 ? 1 : (3 * T + 10) / 20;
}

}  // namespace gptbench
