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
  std::string cut;   // a remark where not all layouts were searched; else ""
};

// Layouts that are searched while the ranks of a run wait: about a minute of one core.
constexpr int64_t max_auto_layouts = 500'000;

// The deck itself where run.layout is 'given'. Where there are more than max_layouts, the best of
// the first (project/search.h), which the text says. Throws Error(Exit::usage) where no layout
// fits.
ChosenLayout with_best_layout(const Deck& deck, int64_t ranks, const Machine& machine,
                              const Software& software, int64_t max_layouts);
// For the profile of run.machine, '' being input/machines/local.in. Throws
// Error(Exit::usage) where there is no such profile.
ChosenLayout with_best_layout(const Deck& deck, int64_t ranks);

}  // namespace gptbench
