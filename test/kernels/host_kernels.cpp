// The kernels under test: the host's.
#include "kernel_test.h"

namespace gptbench::test {

const KernelTable& kernels_under_test(const Device& host, ComputeType compute) {
  return host.kernels(compute);
}

Queue& queue_under_test(Queue& of_host) {
  return of_host;
}

bool kernels_round_alike() {
  return true;
}

}  // namespace gptbench::test
