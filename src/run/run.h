// The phases of a run, from the deck to the verdict.
#pragma once

#include <string>

#include "base/error.h"
#include "comm/mpi_world.h"
#include "deck/config.h"
#include "run/command_line.h"

namespace gptbench {

// Collective. Runs the deck on all ranks of `world` and returns the exit status; rank 0 prints the
// report and writes the result file. Throws AgreedError where the run is refused.
Exit run_deck(MpiWorld& world, const CommandLine& line, const std::string& argv);

}  // namespace gptbench
