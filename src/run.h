// The phases of a run, from the deck to the verdict.
#pragma once

#include <string>

#include "base/error.h"
#include "comm/mpi_world.h"
#include "command_line.h"
#include "deck/config.h"

namespace gptbench {

// An Error that every rank throws alike, so that rank 0 can print it and all can end in order.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Collective. Runs the deck on all ranks of `world` and returns the exit status; rank 0 prints the
// report and writes the result file. Throws AgreedError where the run is refused.
Exit run_deck(MpiWorld& world, const CommandLine& line, const std::string& argv);

}  // namespace gptbench
