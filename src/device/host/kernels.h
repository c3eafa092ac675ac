// The host's kernels: oneDNN for GEMMs, Kokkos for everything else. Results are the same bits from
// run to run and, except for GEMMs, for any number of threads.
#pragma once

#include "device/kernels.h"

namespace gptbench {

// fp32, bf16 and fp16.
const KernelTable& host_kernels(ComputeType compute);

// A: float, bfloat16 or float16. S is float.
namespace host {
#define GPTBENCH_DECLARED(name, Arguments) \
  template <class A>                       \
  void name(Queue&, const Arguments&);
GPTBENCH_KERNELS(GPTBENCH_DECLARED)
#undef GPTBENCH_DECLARED
}  // namespace host
}  // namespace gptbench

// Instantiates kernel `name` for all types of activations.
#define GPTBENCH_HOST_KERNEL(name, Arguments)             \
  template void name<float>(Queue&, const Arguments&);    \
  template void name<bfloat16>(Queue&, const Arguments&); \
  template void name<float16>(Queue&, const Arguments&);
