// Kernels of a GPU, for activations of type A = float, bfloat16 or float16; S is float. Each
// enqueues on the queue's stream. Results do not depend on the device's number of multiprocessors,
// nor on timing: no sum is made with atomic additions of floating-point numbers.
#pragma once

#include "device/kernels.h"

namespace gptbench::cuda {

#define GPTBENCH_DECLARED(name, Arguments) \
  template <class A>                       \
  void name(Queue&, const Arguments&);
GPTBENCH_KERNELS(GPTBENCH_DECLARED)
#undef GPTBENCH_DECLARED

template <class A>
constexpr KernelTable table_of() {
  KernelTable table{};
#define GPTBENCH_ENTRY(name, Arguments) table.name = name<A>;
  GPTBENCH_KERNELS(GPTBENCH_ENTRY)
#undef GPTBENCH_ENTRY
  return table;
}
template <class A>
inline constexpr KernelTable table = table_of<A>();

}  // namespace gptbench::cuda

// Instantiates kernel `name` for all types of activations.
#define GPTBENCH_CUDA_KERNEL(name, Arguments)             \
  template void name<float>(Queue&, const Arguments&);    \
  template void name<bfloat16>(Queue&, const Arguments&); \
  template void name<float16>(Queue&, const Arguments&);
