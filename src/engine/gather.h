// Whole tensors from the ranks that hold their parts.
#pragma once

#include <vector>

#include "comm/mpi_world.h"
#include "engine/engine.h"

namespace gptbench {

// Collective. Elements [first, first + count) of tensor `tensor` on rank 0, none on the others;
// every element is counted by one rank (Engine::read), so the sum is exact.
inline std::vector<double> gather(MpiWorld& world, Engine& engine, Role role, int tensor,
                                  int64_t first, int64_t count) {
  std::vector<double> values = engine.read(role, tensor, first, count);
  world.sum_on_first(values);
  if (world.rank() != 0) return {};
  return values;
}

}  // namespace gptbench
