#include "deck/validate_model.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "deck/family.h"
#include "deck/values.h"

namespace gptbench {
namespace {

using std::to_string;

void check_heads(const Deck& deck) {
  const ModelConfig& model = deck.config.model;
  const int64_t heads = model.num_attention_heads;
  if (model.hidden_size % heads != 0) {
    const int64_t below = model.hidden_size / heads * heads;
    deck.fail({"model.hidden_size", "model.num_attention_heads"},
              "{model.hidden_size} is not divisible by num_attention_heads = "
              "{=model.num_attention_heads}; nearest sizes: " +
                  (below > 0 ? to_string(below) + " or " : "") + to_string(below + heads));
  }
  if (model.num_kv_heads != 0 && heads % model.num_kv_heads != 0)
    deck.fail({"model.num_kv_heads", "model.num_attention_heads"},
              "{model.num_kv_heads} does not divide num_attention_heads = "
              "{=model.num_attention_heads}; use a divisor, or 0 for as many");
}

// Pairs of sentences and masked tokens.
void check_pairs(const Deck& deck) {
  const ModelConfig& model = deck.config.model;
  constexpr int64_t least = 8;  // room for two segments and three special tokens
  if (model.seq_length < least)
    deck.fail({"model.seq_length", "model.family"},
              "{model.seq_length} is too short for two segments of family = 'bert'; use at least "
              "8");
  if (model.vocab_size < least)
    deck.fail({"model.vocab_size", "model.family"},
              "{model.vocab_size} leaves no room for tokens beside [CLS], [SEP] and [MASK]; use at "
              "least 8");
}

void check_family(const Deck& deck) {
  const ModelConfig& model = deck.config.model;
  const FamilyRow& row = family_row(model.family);
  const PositionEmbedding positions = family_of(model).positions;
  if (!contains(row.positions, positions)) {
    std::vector<std::string> names;
    for (const PositionEmbedding each : row.positions) names.push_back(name_of(each));
    deck.fail({"model.position_embedding", "model.family"},
              "{model.position_embedding} is not one of family = {=model.family}; use " +
                  join_quoted(names, " or "));
  }
  if (model.no_bias && row.biases == Biases::required)
    deck.fail({"model.no_bias", "model.family"},
              "{model.no_bias} is not one of family = {=model.family}; use family = 'mpt', or "
              ".false.");
  if (row.head == HeadKind::masked) check_pairs(deck);
  const int64_t head_size = model.hidden_size / model.num_attention_heads;
  if (positions == PositionEmbedding::rotary && head_size % 2 != 0)
    deck.fail({"model.hidden_size", "model.num_attention_heads"},
              "rotary positions turn pairs of channels: the head size hidden_size / "
              "num_attention_heads = " +
                  to_string(head_size) + " must be even; use other sizes");
  // The default may stand there: an echo writes every key, and is a deck.
  if (positions != PositionEmbedding::rotary && model.rotary_theta != ModelConfig().rotary_theta)
    deck.fail({"model.rotary_theta"},
              "model.rotary_theta has no meaning with position_embedding = " +
                  format_string(name_of(positions)) + "; take it out, or use family = 'llama'");
}

}  // namespace

void check_model(const Deck& deck) {
  check_heads(deck);
  check_family(deck);
}

}  // namespace gptbench
