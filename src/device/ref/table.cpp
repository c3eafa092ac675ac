#include "device/ref/kernels.h"

namespace gptbench {
namespace {

template <class A, class S>
constexpr KernelTable table_of() {
  KernelTable table{};
#define GPTBENCH_ENTRY(name, Arguments) table.name = ref::name<A, S>;
  GPTBENCH_KERNELS(GPTBENCH_ENTRY)
#undef GPTBENCH_ENTRY
  return table;
}

constexpr KernelTable fp32_table = table_of<float, float>();
constexpr KernelTable bf16_table = table_of<bfloat16, float>();
constexpr KernelTable fp16_table = table_of<float16, float>();
constexpr KernelTable fp64_table = table_of<double, double>();

}  // namespace

const KernelTable& ref_kernels(ComputeType compute) {
  switch (compute) {
    case ComputeType::bf16:
      return bf16_table;
    case ComputeType::fp16:
      return fp16_table;
    case ComputeType::fp64:
      return fp64_table;
    case ComputeType::fp32:
      break;
  }
  return fp32_table;
}

}  // namespace gptbench
