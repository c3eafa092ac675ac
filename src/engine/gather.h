// Whole tensors from the ranks that hold their parts.
#pragma once

#include <vector>

#include "comm/mpi_world.h"
#include "engine/engine.h"

namespace gptbench {

// Collective. Elements [first, first + count) of tensor `tensor` on rank 0, zeros on the others;
// every element is counted by one rank (Engine::read), so the sum is exact.
std::vector<double> gather(MpiWorld& world, Engine& engine, Role role, int tensor, int64_t first,
                           int64_t count);

}  // namespace gptbench
