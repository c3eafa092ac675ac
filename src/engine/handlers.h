// Handlers of operations: one function per kind, found in a table.
#pragma once

#include "engine/op_call.h"

namespace gptbench {

// By file: execute_attention, execute_kernels (all other kernels), execute_data.
namespace handle {
#define GPTBENCH_OP(kind, ...) void kind(const OpCall& call);
#include "plan/op_table.inc"
#undef GPTBENCH_OP
}  // namespace handle

using Handler = void (*)(const OpCall&);
inline constexpr Handler handlers[num_op_kinds] = {
#define GPTBENCH_OP(kind, ...) handle::kind,
#include "plan/op_table.inc"
#undef GPTBENCH_OP
};

}  // namespace gptbench
