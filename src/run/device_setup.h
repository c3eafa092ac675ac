// Which device and which communicators a run computes on, and the choices that the device measures.
#pragma once

#include <memory>
#include <string>

#include "comm/mpi_world.h"
#include "deck/config.h"
#include "device/device.h"
#include "plan/plan.h"

namespace gptbench {

// Settles run.device and run.comm for a plan that nobody runs here: 'auto' stands for the host.
void resolve_device(Config& config);

// Collective. Settles run.device ('auto': a GPU where every rank sees one) and run.comm ('auto':
// NCCL where each rank has a GPU of its own), and makes this rank's device. All ranks throw
// AgreedError where what the deck asks for cannot be had.
std::unique_ptr<Device> make_device(MpiWorld& world, Config& config);

// Collective. Group of this rank along `axis` by the library that run.comm names; null where the
// rank is in none.
std::unique_ptr<Communicator> make_communicator(MpiWorld& world, const Plan& plan, Axis axis);

// What carries a run's messages: "NCCL 2.28.9; Open MPI v4.1.4" where run.comm is 'nccl'.
std::string message_libraries(const MpiWorld& world, const Config& config);

// Collective. Has the device choose what it chooses by measuring: from the file run.algorithms
// where that names one, by measurement for the rest; rank 0's choices count on all ranks. Throws
// AgreedError.
void settle_choices(MpiWorld& world, Device& device, const Plan& plan);

}  // namespace gptbench
