// The CUDA back end of a program that was built without nvcc: refusals.
#include "base/error.h"
#include "cuda/backend.h"

namespace gptbench {
namespace {

const char* const reason =
    "this program was built without CUDA (no nvcc was found); build it where nvcc is, or use "
    "device = 'host'";

}  // namespace

void set_cuda_environment() {}

VisibleGpus visible_gpus() {
  return {0, reason};
}

std::unique_ptr<Device> make_cuda_device(const CudaOptions& /*options*/) {
  throw Error(Exit::usage, std::string("device = 'cuda': ") + reason);
}

std::string nccl_obstacle(MpiWorld& /*world*/) {
  return reason;
}

std::string nccl_description() {
  throw Error(Exit::usage, std::string("comm = 'nccl': ") + reason);
}

std::unique_ptr<Communicator> make_nccl_communicator(MpiWorld& /*world*/, const Plan& /*plan*/,
                                                     Axis /*axis*/) {
  throw Error(Exit::usage, std::string("comm = 'nccl': ") + reason);
}

std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> /*host*/,
                                                       bool /*from_device*/) {
  throw Error(Exit::usage, std::string("device = 'cuda': ") + reason);
}

}  // namespace gptbench
