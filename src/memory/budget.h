// Whether the memory of a plan fits, checked before any of it is touched: Linux grants more memory
// than it has, and ends the process that uses it.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "comm/mpi_world.h"
#include "device/device.h"
#include "plan/plan.h"

namespace gptbench {

// Memory of each rank beside its arena: program, MPI, HDF5 and GEMM library. On x86-64 with Open
// MPI 4.1.4 it was below 120 MiB per rank for 1 to 8 ranks.
constexpr int64_t runtime_bytes_per_rank = 160 * MiB;

struct MemoryBudget {
  bool fits = true;         // global: the same on all ranks
  int64_t need_bytes = 0;   // of all ranks that share this rank's memory
  int64_t offer_bytes = 0;  // available to them
  std::string reason;       // where it does not fit: that of the lowest such rank, on all ranks
};

// Collective. Compares the need of the ranks of each node with the limits of node and cgroup, and
// the need of each rank with &memory device_memory_gib where that is set.
MemoryBudget agree_on_memory(MpiWorld& world, const Device& device, const Plan& plan);

// Collective. The ranks that have this rank's memory: those on its device, or of its node.
int64_t ranks_of_memory(MpiWorld& world, const Device& device);

}  // namespace gptbench
