#include "engine/gather.h"

namespace gptbench {

std::vector<double> gather(MpiWorld& world, Engine& engine, Role role, int tensor, int64_t first,
                           int64_t count) {
  std::vector<double> values = engine.read(role, tensor, first, count);
  world.sum_on_first(values);
  return values;
}

}  // namespace gptbench
