// The layouts that a deck can have on a number of ranks, by projected time.
//
// A search varies the keys of Layout but those that are kept (project/layout.h). The
// global batch is that of the deck, so that all layouts do the same work: where the deck leaves it
// open, that of its own layout. data_parallel is what a layout leaves of the ranks. Values tried:
//   sizes of axes     divisors of the ranks
//   virtual stages    2, 3, 4, ... up to the layers, with pipeline_schedule = 'interleaved'
//   micro-batches     the smallest that cut a replica's share of the batch into 1, 2, 3, ...
//   orders of ranks   those that lay messages between nodes in another way; the fastest is kept
// A choice that changes nothing (ZeRO on one rank, a schedule of one stage) is not tried. Whether a
// layout is legal, the checks of decks decide (deck/validate.h); whether it fits, the plan.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "project/layout.h"
#include "project/project.h"

namespace gptbench {

struct FoundLayout {
  Layout layout;
  int64_t data_parallel = 1;
  Projection projection;
};

// Layouts that cannot run, by the keys that do not go together, "memory" where they do not fit.
struct LeftOut {
  std::string reason;
  std::string example;  // the message about the first of them
  int64_t count = 0;
};

struct LayoutSearch {
  int64_t layouts = 0, fitting = 0;
  int64_t judged = 0;     // whether they are legal and fit; all unless the search is cut
  int64_t projected = 0;  // of those that fit; the others compute too long to be among the best
  bool is_cut = false;    // a better layout may be among those not judged or not projected
  int64_t global_batch_size = 0;
  std::vector<FoundLayout> best;  // shortest step first
  std::vector<LeftOut> left_out;  // most frequent first
};

// How far a search is: so many of the layouts are judged, and of those that fit projected.
struct SearchProgress {
  int64_t layouts = 0, judged = 0, projected = 0;
};
// Whether the search goes on. Otherwise it judges no more layouts, and projects of those that fit
// the most promising, until as many as are kept.
using SearchWatch = std::function<bool(const SearchProgress& progress)>;

constexpr int64_t all_layouts = std::numeric_limits<int64_t>::max();

// All layouts of `deck` on `ranks` ranks, of which `top`, at least 1, are kept. Takes as many
// threads as the process may use, and calls `watch` from the calling one before each of its two
// phases and some times per second. Grids (sizes of axes) whose tensor and context groups lie
// within a node come first, of these small context groups. Where all have more than max_layouts,
// the first grids are searched that together have at most so many, but one at least: the same ones
// on every machine. Throws Error(Exit::usage) where no layout fits the deck.
LayoutSearch search_layouts(const Deck& deck, int64_t ranks, const Machine& machine,
                            const Software& software, int64_t top, const SearchWatch& watch = {},
                            int64_t max_layouts = all_layouts);

// "cut after 12,987 of 97,575 layouts"; "" of a search that was not cut.
std::string cut_remark(const LayoutSearch& search);

}  // namespace gptbench
