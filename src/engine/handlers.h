// What the engine does for each kind of operation: one function, found in a table.
#pragma once

#include "engine/op_call.h"

namespace gptbench {

using Handler = void (*)(const OpCall&);
Handler handler_of(OpKind kind);

// By file: execute_inputs (load_tokens to load_control), execute_arrays, execute_linear (with fp8),
// execute_norm, execute_attention, execute_elementwise, execute_loss (with the embedding),
// execute_update, execute_messages (with transfers).
namespace handle {
#define GPTBENCH_HANDLER(kind) void kind(const OpCall& call);
GPTBENCH_OP_KINDS(GPTBENCH_HANDLER)
#undef GPTBENCH_HANDLER
}  // namespace handle

}  // namespace gptbench
