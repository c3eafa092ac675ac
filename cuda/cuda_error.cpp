#include "cuda/cuda_error.h"

#include <string>

namespace gptbench {

void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  // "cudaMemcpyAsync(to, from, ...)" is said as "cudaMemcpyAsync".
  std::string name = call;
  name = name.substr(0, name.find('('));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw Error(Exit::out_of_memory, "no memory of the GPU for " + name);
  }
  throw Error(Exit::peer,
              name + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

}  // namespace gptbench
