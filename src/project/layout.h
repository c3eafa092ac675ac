// A layout that a search of layouts tries: the keys of a deck that it sets, and their values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deck/deck.h"

namespace gptbench {

struct Layout {
  int64_t tensor_parallel = 1, context_parallel = 1, pipeline_parallel = 1;
  bool sequence_parallel = false;
  PipelineSchedule pipeline_schedule = PipelineSchedule::_1f1b;
  int64_t virtual_stages = 1, zero_stage = 0;
  Recompute activation_checkpointing = Recompute::none;
  int64_t micro_batch_size = 1;
  RankOrder rank_order = RankOrder::tp_cp_pp_dp;
};

// Sizes that an axis of so many ranks can have, ascending.
std::vector<int64_t> divisors_of(int64_t n);

// What is added to the reason why a deck's own layout is refused to a search.
constexpr const char* needs_batch =
    "; where batch.global_batch_size is not given a search takes that of the deck's own layout: "
    "give it";

// Writes the keys of the layout.
void set_layout(Config& config, const Layout& layout);

// Keys that a search sets, "group.key": those of Layout, data_parallel, global_batch_size.
const std::vector<std::string>& layout_keys();
// Whether a search keeps the deck's value of such a key: it stands on the command line, or belongs
// to the row of a sweep.
bool is_kept(const Deck& deck, const std::string& key);
// The kept keys, "group.key=value".
std::vector<std::string> kept_settings(const Deck& deck);
// The deck with its own layout where the ranks can have it, else with one that a search may find:
// the smallest axes that are legal, kept keys as they are, the others as in Layout{}. Whether it
// fits in memory is not asked. Throws Error(Exit::usage) where none of the first 2,000 is legal.
Deck with_legal_layout(const Deck& deck, int64_t ranks);
// A layout of so many replicas as settings of these keys, "group.key=value".
std::vector<std::string> settings_of(const Layout& layout, int64_t data_parallel,
                                     int64_t global_batch_size);
// The deck with settings in place of its own.
Deck with_settings(Deck deck, const std::vector<std::string>& settings);

// "tensor 2 x context 1 x pipeline 4 (1f1b) x data 8, ZeRO 1, micro-batch 4, recomputation full",
// axes in the order of ranks.
std::string describe(const Layout& layout, int64_t data_parallel);

}  // namespace gptbench
