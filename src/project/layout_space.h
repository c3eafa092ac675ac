// The layouts that a search goes through. Internal to project/search.cpp and grid_search.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "project/layout.h"

namespace gptbench {

// What the keys of the layouts of one grid may be, and their numbers, from 0 on: the micro-batch
// varies fastest, sequence parallelism slowest.
struct Choices {
  Layout grid;  // of which only the sizes of axes are set
  std::vector<bool> sequence_parallel;
  std::vector<std::pair<PipelineSchedule, int64_t>> schedules;  // with virtual stages
  std::vector<int64_t> zero_stages;
  std::vector<Recompute> recomputed;
  std::vector<int64_t> micro_batches;

  // Place of each key's value in its list.
  struct Places {
    size_t sequence_parallel = 0, schedule = 0, zero_stage = 0, recompute = 0, micro_batch = 0;
  };
  size_t count() const;
  size_t number_of(const Places& at) const;
  Places places_of(size_t number) const;
  Layout layout(const Places& at) const;
};

class LayoutSpace {
 public:
  // Throws Error(Exit::usage) where the ranks do not hold the sizes of axes that are fixed.
  LayoutSpace(const Deck& deck, int64_t ranks);

  // The deck, with the global batch that all layouts train.
  const Deck& deck() const { return deck_; }
  int64_t ranks() const { return ranks_; }
  const std::vector<Choices>& grids() const { return grids_; }
  // Orders of the ranks of a grid that differ in how these lie on nodes of so many, the default
  // first. Axes of one rank lie anywhere.
  std::vector<RankOrder> orders_of(const Grid& grid, double ranks_per_node) const;

 private:
  // `fixed` where the key is kept.
  template <class T>
  std::vector<T> values(const std::string& key, const T& fixed, std::vector<T> all) const;
  std::vector<int64_t> axis(const std::string& key, int64_t fixed) const;
  std::vector<std::pair<PipelineSchedule, int64_t>> schedules(int64_t stages) const;
  Choices choices_of(const Layout& grid) const;

  Deck deck_;
  int64_t ranks_;
  std::vector<Choices> grids_;
};

}  // namespace gptbench
