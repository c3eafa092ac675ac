#include "post/plan_of.h"

#include "base/error.h"
#include "deck/deck.h"
#include "deck/validate.h"
#include "project/project.h"

namespace gptbench {
namespace {

DeviceTraits traits_of(const Record& record, DeviceKind device) {
  const ProjectionFacts& projection = record.projection;
  if (projection.machine.empty()) return device_traits(device);
  if (!projection.fuses)
    throw Error(Exit::usage,
                "this projection is of an earlier version and does not say which kernels its "
                "software fuses (/projection/fuses); project the deck again");
  return projected_traits(device, *projection.fuses != 0.0);
}

}  // namespace

Plan plan_of(const Record& record) {
  constexpr int64_t max_layers = 10000, max_ranks = 10000000, max_stages = 256;
  const int64_t ranks = record.summary.world_size;
  const Deck deck = parse_deck(record.provenance.deck_name, record.provenance.deck_resolved, {});
  if (ranks >= 1 && ranks <= max_ranks && deck.config.model.num_layers <= max_layers) {
    const Config config = resolve(deck, ranks);
    Plan plan = make_plan(config, ranks, 0, traits_of(record, config.run.device));
    if (plan.grid.pipeline <= max_stages) return plan;
  }
  throw Error(Exit::usage, "the deck of this result cannot be planned");
}

}  // namespace gptbench
