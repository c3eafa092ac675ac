// The reduced models of the in-run verification (doc/verification.md).
#pragma once

#include <cstdint>
#include <vector>

#include "deck/config.h"
#include "plan/plan.h"

namespace gptbench {

// `full` (resolved) with the same decomposition, device, precision, micro-batching pattern and head
// size, cut down so that one rank can repeat it with plain loops in a second or a few: at most two
// layers (as many as there are stages), two key/value heads per rank, short sequences. C, F and V
// are cut to no less than what lies just beyond the blocks in which host kernels do their work
// (device/host/blocking.h and others), where the run's are beyond them as well; with dozens of
// stages of wide layers, of which the reference rank would need minutes and gigabytes, to less.
Config reduced_config(const Config& full);

// That model and, where the run's micro-batches cross blocks of keys or rows that its own do not, a
// second one: one narrow layer per stage and a single micro-batch that does, unless the reference
// rank would need more than about ten seconds for it.
std::vector<Config> reduced_configs(const Config& full);

// Configuration of the reference rank: `reduced` on one rank with plain loops in fp64.
Config reference_config(const Config& reduced);

// make_plan() with random biases and norm scales as well: a wrong offset into arrays of equal
// elements would go unnoticed.
Plan make_reduced_plan(const Config& config, int64_t world_size, int64_t rank,
                       const DeviceTraits& device);

}  // namespace gptbench
