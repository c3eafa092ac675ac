#include "cuda/cuda_error.h"

#include <string>

namespace gptbench {

void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  // "cudaMemcpyAsync(to, from, ...)" is said as "cudaMemcpyAsync".
  std::string name = call;
  name = name.substr(0, name.find('('));
  throw Error(Exit::peer,
              name + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

}  // namespace gptbench
