// Checks that need more than one key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deck/deck.h"

namespace gptbench {

// Where the layout of a run comes from: sizes of axes, schedule, ZeRO stage, micro-batch, ...
// search: --search or run.layout = 'auto' decide it (project/search.h), of which some keys may be
// given.
enum class LayoutFrom { deck, search };
// By run.layout.
LayoutFrom layout_from(const Config& config);

// Keys that do not go together, and products that leave 64-bit integers. Throws Error(Exit::usage)
// with the place of the key that the user set last. What only a whole layout can break is not
// checked where a search decides it: the search validates each layout.
void validate(const Deck& deck, LayoutFrom layout = LayoutFrom::deck);
// Only what a search skips, of a deck that has passed the rest: for layouts by the thousand.
void validate_layout(const Deck& deck);

// The decomposition against the number of ranks. Throws Error(Exit::usage) that names rank counts
// or values that work.
//   data_parallel = 0 takes ranks / (tensor_parallel x pipeline_parallel x context_parallel).
//   Worked example: tensor 2, pipeline 2, data 0 on 8 ranks gives data_parallel 2; on 6 ranks it
//   is refused, and 4 and 8 ranks are named.
void check_ranks(const Deck& deck, int64_t ranks);

// check_ranks, then the Config with every "0" and "auto" that the deck layer defines filled in:
// data_parallel, global_batch_size, num_kv_heads, ffn_hidden_size, position_embedding, no_bias,
// output.directory, the types that follow `compute`. Not run.device and run.comm, which depend on
// the machine.
Config resolve(const Deck& deck, int64_t ranks);
// output.directory, whose default follows from run.name.
std::string output_directory(const Config& config);
// resolve() of a Config whose layout fits the ranks.
Config filled_in(Config config, int64_t ranks);

}  // namespace gptbench
