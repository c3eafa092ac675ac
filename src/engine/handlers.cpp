#include "engine/handlers.h"

namespace gptbench {
namespace {

constexpr Handler handlers[num_op_kinds] = {
#define GPTBENCH_HANDLER(kind) handle::kind,
    GPTBENCH_OP_KINDS(GPTBENCH_HANDLER)
#undef GPTBENCH_HANDLER
};

}  // namespace

Handler handler_of(OpKind kind) {
  return handlers[static_cast<int>(kind)];
}

}  // namespace gptbench
