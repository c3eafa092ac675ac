#include "device/kernels_host.h"

#include "device/kernels_ref.h"

namespace gptbench {

const KernelTable& host_kernels(ComputeType compute) {
  return ref_kernels(compute);
}

}  // namespace gptbench
