// Dumps of weights and gradients (output.dump), for comparison with other programs.
#pragma once

#include <memory>
#include <string>

#include "comm/mpi_world.h"
#include "engine/engine.h"
#include "io/tensor_file.h"
#include "plan/plan.h"

namespace gptbench {

// <directory>/dump.h5 with groups weights_initial, gradients (first step, whole batch, before
// clipping) and weights_final, one dataset per tensor. 'gradients' dumps gradients alone, 'weights'
// all three. Rank 0 writes; members are collective.
class Dump {
 public:
  Dump(MpiWorld& world, const Plan& plan);
  void weights(Engine& engine, const std::string& group);
  void gradients(Engine& engine);
  void close();

 private:
  void write(Engine& engine, Role role, const std::string& group, const std::string& description);

  MpiWorld& world_;
  const Plan& plan_;
  std::unique_ptr<TensorFile> file_;  // rank 0, where a dump was requested
};

}  // namespace gptbench
