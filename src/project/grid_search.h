// Which layouts of one grid (sizes of axes) are legal and fit. Internal to project/search.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "deck/deck.h"
#include "plan/plan.h"
#include "project/layout_space.h"
#include "project/project.h"

namespace gptbench {

// The number of a layout among all: of its grid, and within it.
inline int64_t number_of(size_t grid, size_t number) {
  return static_cast<int64_t>(grid << 32 | number);
}

// Its grid and the number within it.
inline std::pair<size_t, size_t> grid_and_number(int64_t number) {
  return {static_cast<size_t>(number >> 32), static_cast<size_t>(number & 0xffffffff)};
}

// A layout that fits. Its number, of the grid and within it, is its place in the order of the
// search, which decides between equals.
struct Candidate {
  int64_t number = 0;
  double least_s = 0.0;  // no step is shorter
};

// What layouts were found to be.
struct Judged {
  std::vector<Candidate> candidates;
  struct Some {
    int64_t count, first;  // number of the first one
  };
  std::map<std::string, Some> left_out;  // by reason

  void leave_out(const std::string& reason, const Some& some) {
    const auto [found, is_new] = left_out.insert({reason, some});
    if (is_new) return;
    found->second.count += some.count;
    found->second.first = std::min(found->second.first, some.first);
  }
};

// Judges the layouts of a grid of `space`: counts each in `judged` and adds it to `found`. Ends
// early where `stops` is set. `deck`: that of the space, whose layout this changes.
void search_grid(const LayoutSpace& space, size_t grid, const Machine& machine,
                 const Software& software, Deck& deck, Judged& found, std::atomic<int64_t>& judged,
                 const std::atomic<bool>& stops);

// What a rank needs at most, of the plans of the stages that are unlike.
MemoryNeed memory_of(const std::vector<Plan>& stages, const Machine& machine,
                     const Software& software);

}  // namespace gptbench
