// Part of validate() (deck/validate.h): the model.
#pragma once

#include "deck/deck.h"

namespace gptbench {

// Sizes of &model that do not go together, and keys that its family does not have. Throws
// Error(Exit::usage).
void check_model(const Deck& deck);

}  // namespace gptbench
