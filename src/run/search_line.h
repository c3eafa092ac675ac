// A line on the terminal that says how far a search of layouts is.
#pragma once

#include <cstdio>

#include "project/search.h"

namespace gptbench {

// Appears when a search has taken some seconds, is written over while it goes on, and disappears
// with the object.
class SearchLine {
 public:
  // On standard error, where that is a terminal; none otherwise.
  SearchLine();
  // On `out`; null: none. The search begins at start_s.
  SearchLine(std::FILE* out, double start_s) : out_(out), start_s_(start_s) {}
  ~SearchLine();
  SearchLine(const SearchLine&) = delete;
  SearchLine& operator=(const SearchLine&) = delete;

  // now_s: clock of the caller (base/clock.h).
  void show(const SearchProgress& progress, double now_s);
  // Shows each progress of a search that is under way as long as the object, and lets it go on.
  SearchWatch watch();

 private:
  std::FILE* out_;
  double start_s_;
  double shown_s_ = 0.0;  // when it was written last
  bool is_shown_ = false;
};

}  // namespace gptbench
