// gptbench --search: the layouts of a deck by projected time, as text, JSON and decks.
#pragma once

#include <string>

#include "project/search.h"
#include "run/command_line.h"

namespace gptbench {

// Returns what to print. A signal (run/signals.h) ends the search early: then it is the best so
// far, and a remark says so. Writes the decks of the best layouts where line.decks_directory names
// a directory. Throws Error: usage, io.
std::string run_search(const CommandLine& line);

// A finished search.
struct SearchReport {
  const Deck& deck;
  int64_t ranks = 0;
  const Machine& machine;
  const Software& software;
  const LayoutSearch& search;
};
// In 80 columns: the best layouts, how many were left out for which reason, and as last line
// "GPTBENCH search layouts=... fit=... sec_per_it=... mfu=... memory_bytes=... machine=...
// software=...", the figures being "none" where nothing fits.
std::string search_text(const SearchReport& report);
std::string search_json(const SearchReport& report);
// The deck of layout `place` (from 0) of the best, with a comment that says how it was chosen.
std::string layout_deck_text(const SearchReport& report, size_t place);

}  // namespace gptbench
