// The phases of a run, from the deck to the verdict.
#pragma once

#include <string>

#include "base/error.h"
#include "comm/mpi_world.h"
#include "deck/deck.h"
#include "run/command_line.h"

namespace gptbench {

// Collective. The deck with the overrides of the command line, validated: `text`, or where that is
// empty the file that the command line names, which rank 0 reads. Throws AgreedError.
Deck read_deck_once(MpiWorld& world, const CommandLine& line, std::string text);

// Collective. Runs the deck on all ranks of `world` and returns the exit status; rank 0 prints the
// report and writes the result file. Throws AgreedError where the run is refused.
Exit run_deck(MpiWorld& world, const CommandLine& line, const std::string& argv);

}  // namespace gptbench
