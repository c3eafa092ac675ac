// The reduced model of the in-run verification.
#pragma once

#include <cstdint>

#include "deck/config.h"

namespace gptbench {

// `full` (resolved) with the same decomposition, device, precision, micro-batching pattern and head
// size, cut down so that one rank can repeat it with plain loops in seconds: at most two layers (as
// many as there are stages), two key/value heads, a few hundred tokens of vocabulary, and a
// sequence that still spans several tiles of the attention kernels where the number of replicas
// allows.
Config reduced_config(const Config& full);

// What the reference rank runs: `reduced` on one rank with plain loops in fp64.
Config reference_config(const Config& reduced);

}  // namespace gptbench
