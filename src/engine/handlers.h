// What the engine does for each kind of operation: one function, found in a table.
#pragma once

#include "engine/op_call.h"

namespace gptbench {

// By file: execute_attention, execute_kernels (all other kernels), execute_data.
#define GPTBENCH_HANDLER(kind) void kind(const OpCall& call);
namespace handle {
GPTBENCH_OP_KINDS(GPTBENCH_HANDLER)
}  // namespace handle
#undef GPTBENCH_HANDLER

using Handler = void (*)(const OpCall&);
#define GPTBENCH_HANDLER(kind) handle::kind,
inline constexpr Handler handlers[num_op_kinds] = {GPTBENCH_OP_KINDS(GPTBENCH_HANDLER)};
#undef GPTBENCH_HANDLER

}  // namespace gptbench
