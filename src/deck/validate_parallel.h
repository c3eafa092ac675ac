// Part of validate() and check_ranks() (deck/validate.h): the decomposition.
#pragma once

#include <cstdint>

#include "deck/deck.h"

namespace gptbench {

// Checks that sizes divide among tensor-parallel ranks and pipeline stages, and that the schedule
// fits the other keys. Throws Error(Exit::usage).
void check_decomposition(const Deck& deck);
// ZeRO groups against the number of replicas. Throws Error(Exit::usage).
void check_zero_group(const Deck& deck, int64_t replicas);

}  // namespace gptbench
