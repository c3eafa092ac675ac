// Selection of the device and the communicators of a run, and autotuning of the device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/mpi_world.h"
#include "deck/config.h"
#include "device/device.h"
#include "plan/plan.h"

namespace gptbench {

// Selects run.device, run.comm and run.mpi_arrays of a run without GPUs, and of plans and rows of a
// sweep that are only printed: 'auto' means the host.
void resolve_device(Config& config);

// Collective. Selects run.device ('auto': a GPU where every rank sees one) and run.comm ('auto':
// NCCL where each rank has its own GPU), and creates this rank's device. All ranks throw
// AgreedError where the deck's request cannot be honoured.
std::unique_ptr<Device> make_device(MpiWorld& world, Config& config);

// Collective. Communicator of this rank's group along `axis`, by the library that run.comm names;
// null where the rank is in no such group.
std::unique_ptr<Communicator> make_communicator(MpiWorld& world, const Plan& plan, Axis axis);

// Names of the communication libraries: "NCCL 2.28.9; Open MPI v4.1.4" where run.comm is 'nccl'.
std::string message_libraries(const Config& config);

// Lines "key=selection" of all `texts`, each key once: the first selection counts.
std::string merge_selections(const std::vector<std::string>& texts);

// Collective. Autotuning: reuses the selections in the file run.algorithms, measures the rest.
// Where several ranks selected for the same call, the lowest rank decides. Throws AgreedError.
void autotune(MpiWorld& world, Device& device, const Plan& plan);

}  // namespace gptbench
