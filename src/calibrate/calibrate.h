// gptbench --calibrate: measures the machine that it runs on, rank by rank through the engine's
// kernel table and communicators, and writes what it found as a result file and as a machine
// profile.
#pragma once

#include <string>

#include "base/error.h"
#include "comm/mpi_world.h"
#include "run/command_line.h"

namespace gptbench {

// Seconds, where run.time_limit_s is 0.
constexpr double calibration_limit_s = 120.0;

// Collective. With a deck: its GEMMs, attention, types, axes and collectives; without: a grid of
// shapes, and all collectives. Writes <directory>/result.h5 and <directory>/<run name>.in, where a
// deck's run name has "-calibration" behind it. Returns the exit status; throws AgreedError.
Exit calibrate(MpiWorld& world, const CommandLine& line, const std::string& argv);

}  // namespace gptbench
