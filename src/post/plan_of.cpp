#include "post/plan_of.h"

#include "base/error.h"
#include "deck/deck.h"
#include "deck/validate.h"

namespace gptbench {

Plan plan_of(const Record& record) {
  constexpr int64_t max_layers = 10000, max_ranks = 10000000, max_stages = 256;
  const int64_t ranks = record.summary.world_size;
  const Deck deck = parse_deck(record.provenance.deck_name, record.provenance.deck_resolved, {});
  if (ranks >= 1 && ranks <= max_ranks && deck.config.model.num_layers <= max_layers) {
    Plan plan = make_plan(resolve(deck, ranks), ranks, 0);
    if (plan.grid.pipeline <= max_stages) return plan;
  }
  throw Error(Exit::usage, "the deck of this result cannot be planned");
}

}  // namespace gptbench
