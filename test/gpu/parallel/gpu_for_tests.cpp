// Devices and communicators of the CUDA back end for the tests of test/parallel.
#include "cuda/backend.h"
#include "train.h"

namespace gptbench {
namespace {

std::unique_ptr<Device> make_device(const Config& config, const MpiWorld* ranks_together) {
  return make_cuda_device({ranks_together != nullptr ? ranks_together->node_rank() : 0,
                           config.run.comm == CommLibrary::mpi, config.precision.tf32,
                           AttentionKernels::native, config.run.deterministic});
}

std::unique_ptr<Communicator> make_communicator(MpiWorld& world, const Plan& plan, Axis axis) {
  if (plan.config.run.comm == CommLibrary::nccl) return make_nccl_communicator(world, plan, axis);
  return make_staged_communicator(world.make_communicator(plan.grid, axis), false);
}

const GpuForTests functions = {make_device, make_communicator};
const bool registered = (gpu_for_tests = &functions) != nullptr;

}  // namespace
}  // namespace gptbench
