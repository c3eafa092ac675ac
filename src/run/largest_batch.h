// The search for the largest batch that fits in memory (run.find_largest): the candidates, and the
// largest of them by the plan.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "deck/deck.h"
#include "plan/plan.h"

namespace gptbench {

// The candidates of a deck, numbered from 1: micro_batch_size b = 1, 2, 3, ..., or b = 1, 2, 4, ...
// with find_largest_over = 'powers_of_two'.
//   find_largest = 'micro_batch'   micro_batch_size = b; global_batch_size as in the deck, which
//                                  bounds b, or b x data_parallel where the deck leaves it open
//   find_largest = 'global_batch'  micro_batch_size = b and global_batch_size = b x data_parallel x
//                                  the deck's micro-batches per step (1 where it leaves
//                                  global_batch_size open)
// Worked example: data_parallel 8, micro_batch_size 2, global_batch_size 64 is 4 micro-batches per
// step. The 3rd candidate of 'micro_batch' is 3 and 64 (at most the 8th: 8 and 64), that of
// 'global_batch' 3 and 96. Over powers of two these are 4 and 64 (at most the 4th), 4 and 128.
class BatchCandidates {
 public:
  // `resolved` is the deck's for the ranks of the run. Pure.
  BatchCandidates(const Deck& deck, const Config& resolved);

  bool is_requested() const { return config_.run.largest.search != FindLargest::none; }
  // Resolved Config of a candidate, with enough steps to see late failures.
  Config at(int64_t candidate) const;
  // The same of the candidate with this micro_batch_size.
  Config with(int64_t micro_batch_size) const;
  // Whether a deck may have it: bounds of the global batch and of 64-bit sizes.
  bool is_allowed(int64_t candidate) const;
  // "micro_batch_size = 12", "global_batch_size = 96".
  std::string name(int64_t candidate) const;

 private:
  int64_t micro_batch_size(int64_t candidate) const;

  Deck deck_;
  Config config_;
  int64_t micro_batches_ = 1;  // per step
  bool global_is_fixed_ = false;
};

// Largest candidate that is allowed and fits; 0 where not even the first does. Doubling, then
// bisection: about 2 log2(candidate) calls of `fits`, which must change from true to false once.
int64_t largest_candidate(const BatchCandidates& candidates,
                          const std::function<bool(int64_t candidate)>& fits);

// Largest candidate that runs, where the plan says that `planned` >= 1 fits: that one first, then
// by growing steps below, then between. Where `runs` returns nothing, the run failed for another
// reason, which ends the search. 0 where none ran.
int64_t largest_that_runs(int64_t planned,
                          const std::function<std::optional<bool>(int64_t candidate)>& runs);

// By plans alone, without MPI: the rank with the highest need of device memory (all ranks of a
// pipeline stage need the same), and the largest candidate whose ranks all fit in `cap_bytes`.
struct HighestNeed {
  int64_t rank = 0, bytes = 0;
};
HighestNeed highest_need(const Config& resolved, int64_t ranks, const DeviceTraits& device);
int64_t largest_by_plan(const BatchCandidates& candidates, int64_t ranks, int64_t cap_bytes,
                        const DeviceTraits& device);

}  // namespace gptbench
