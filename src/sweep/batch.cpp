#include "sweep/batch.h"

#include <string>

#include "base/units.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

int64_t sequences_of_budget(const Deck& deck, int64_t tokens) {
  const int64_t length = deck.config.model.seq_length;
  if (tokens < length)
    deck.fail({"model.seq_length"},
              "global_batch_tokens = " + std::to_string(tokens) +
                  " hold no sequence of seq_length = " + std::to_string(length));
  return tokens / length;
}

int64_t sequences_accumulated(const SweepRow& row, int64_t accumulation) {
  const int64_t replicas = resolve(row.deck, row.ranks).parallel.data_parallel;
  const std::string what = "the global batch of gradient_accumulation";
  return checked_product(
      checked_product(row.deck.config.batch.micro_batch_size, replicas, what.c_str()), accumulation,
      what.c_str());
}

}  // namespace

void set_global_batch(SweepRow& row, int64_t tokens, int64_t accumulation) {
  if (tokens == 0 && accumulation == 0) return;
  Deck& deck = row.deck;
  const std::string given =
      tokens > 0 ? "sweep.global_batch_tokens" : "sweep.gradient_accumulation";
  if (deck.origin("batch", "global_batch_size").kind != Origin::Kind::default_value)
    deck.fail({"batch.global_batch_size"},
              "batch.global_batch_size and " + given + " are both given; leave one out");
  if (tokens > 0 && accumulation > 0)
    deck.fail({"batch.global_batch_size"},
              "sweep.global_batch_tokens and sweep.gradient_accumulation are both given; leave "
              "one out");
  if (accumulation > 0) check_ranks(deck, row.ranks);
  deck.config.batch.global_batch_size =
      tokens > 0 ? sequences_of_budget(deck, tokens) : sequences_accumulated(row, accumulation);
  deck.origins[key_index(*find_key("batch", "global_batch_size"))].kind = Origin::Kind::sweep;
}

}  // namespace gptbench
