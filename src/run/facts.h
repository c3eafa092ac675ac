// Facts about the machine that the ranks gather for report and record.
#pragma once

#include <string>

#include "comm/mpi_world.h"
#include "device/device.h"
#include "engine/engine.h"
#include "plan/plan.h"
#include "run/record_parts.h"

namespace gptbench {

// Collective; on rank 0.
MachineFacts gather_machine(MpiWorld& world, const Config& config, const Device& device);

// Collective. One line per node: which processors its ranks run on; on rank 0.
std::string gather_bindings(MpiWorld& world, const Device& device);

// Collective, after the last step; entries on rank 0.
MemoryUse gather_memory(MpiWorld& world, const Engine& engine, const Plan& plan);

}  // namespace gptbench
