#include "device/host/kernels.h"

namespace gptbench {
namespace {

template <class A>
constexpr KernelTable table_of() {
  KernelTable table{};
#define GPTBENCH_ENTRY(name, Arguments) table.name = host::name<A>;
  GPTBENCH_KERNELS(GPTBENCH_ENTRY)
#undef GPTBENCH_ENTRY
  return table;
}

constexpr KernelTable fp32_table = table_of<float>();
constexpr KernelTable bf16_table = table_of<bfloat16>();
constexpr KernelTable fp16_table = table_of<float16>();

}  // namespace

const KernelTable& host_kernels(ComputeType compute) {
  return compute == ComputeType::bf16   ? bf16_table
         : compute == ComputeType::fp16 ? fp16_table
                                        : fp32_table;
}

}  // namespace gptbench
