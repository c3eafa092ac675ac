#include "plan/assigned_gradients.h"

namespace gptbench {

// Matrices of the layers, and the table of the output head, which a tied embedding adds to after
// the head.
AssignedGradients::AssignedGradients(const PlanBuilder& builder) : plan_(builder.plan()) {
  for (const Chunk& chunk : plan_.chunks) {
    for (int64_t l = chunk.first_layer; l < chunk.end_layer; ++l)
      for (const Linear linear : all_linears)
        tensors_.insert(builder.tensor(tensor_name(l, linear, "weight")));
    if (chunk.has_head)
      tensors_.insert(
          builder.tensor(plan_.shape.family.shares_embedding() ? "wte" : "lm_head.weight"));
  }
}

}  // namespace gptbench
