// run.layout = 'auto': the layout with the shortest projected step in place of the deck's own.
#pragma once

#include <string>

#include "deck/deck.h"
#include "project/profile.h"

namespace gptbench {

struct ChosenLayout {
  Deck deck;
  std::vector<std::string>
      settings;      // "group.key=value" of the keys chosen; none: layout = 'given'
  std::string text;  // the layout, of how many, for which machine
};

// The deck itself where run.layout is 'given'. Throws Error(Exit::usage) where no layout fits.
ChosenLayout with_best_layout(const Deck& deck, int64_t ranks, const Machine& machine,
                              const Software& software);
// For the profile of run.machine, '' being input/machines/local.in. Throws
// Error(Exit::usage) where there is no such profile.
ChosenLayout with_best_layout(const Deck& deck, int64_t ranks);

}  // namespace gptbench
