// Whether a plan fits, asked before any of it is touched: Linux hands out memory that it does not
// have, and ends the process that uses it.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "comm/mpi_world.h"
#include "device/device.h"
#include "plan/plan.h"

namespace gptbench {

// Set aside for each rank beside its arena: program, MPI, HDF5 and GEMM library. Measured
// 2026-11-20 on x86-64 with Open MPI 4.1.4 as below 120 MiB for 1 to 8 ranks.
constexpr int64_t runtime_bytes_per_rank = 160 * MiB;

struct MemoryBudget {
  bool fits = true;         // global: the same on all ranks
  int64_t need_bytes = 0;   // of the ranks that share the memory of this one
  int64_t offer_bytes = 0;  // available to them
  std::string reason;       // where it does not fit, of the first rank concerned; on all ranks
};

// Compares, collectively over `world`, the need of the ranks of each node with what node and cgroup
// offer, and each rank's with &memory device_memory_gib where that is set.
MemoryBudget agree_on_memory(MpiWorld& world, const Device& device, const Plan& plan);

}  // namespace gptbench
