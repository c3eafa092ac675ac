// Set-up between a plan and its first step: communicators, the arena, CUDA graphs.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/mpi_world.h"
#include "device/device.h"
#include "engine/engine.h"
#include "plan/plan.h"

namespace gptbench {

// The communicators of the axes along which the plan of any rank sends messages.
class Connections {
 public:
  Connections(MpiWorld& world, const Plan& plan);  // collective
  const CommunicatorTable& table() const { return table_; }

 private:
  std::array<std::unique_ptr<Communicator>, num_axes> owned_;
  CommunicatorTable table_;
};

// Collective. Allocates the arena and checks that memory is left for the libraries, which fail
// without it. Where some rank has too little: what the lowest such rank could not allocate, on all
// ranks; else "". Throws AgreedError(Exit::io) where one cannot create its file of offloaded data.
std::string take_arena(MpiWorld& world, Engine& engine, Device& device);

// Throws AgreedError where the deck demands CUDA graphs that the plan does not allow. Local.
void check_graphs(const Plan& plan);

// Throws Error(Exit::usage) where a message by MPI has 2^31 elements or more; those of all ranks in
// a reduce-scatter or all-gather. MPI is called with the share of one rank there, but Open MPI
// multiplies it by a number of ranks in int. All-reduces are cut (plan/messages.h). Local.
void check_message_sizes(const Plan& plan);

// Collective. Enables CUDA graphs where deck and plan allow them.
void allow_graphs(MpiWorld& world, Engine& engine, const Plan& plan);

// Line for chosen_algorithms: whether steps were replayed as CUDA graphs, and if not, why.
std::string graph_note(const Engine& engine, const Plan& plan);

}  // namespace gptbench
