// Where the numbers of a step cease to be finite.
#pragma once

#include <string>

#include "engine/resources.h"

namespace gptbench {

struct NonFinite {
  std::string what;         // "" where all numbers are finite
  bool here = false;        // it arose on this rank: it did not come in a message
  bool in_weights = false;  // of some rank, before the step that met it; the same on all ranks
};

// The first tensor of this rank's parameters that holds a number that is not finite: "tensor
// h.1.mlp.fc.weight of the weights".
NonFinite non_finite_weights(Resources& resources);

// Looks at what the operations of a step assign, until one assigns a number that is not finite
// while what it reads is finite, or came in a message: "layernorm_forward, layer 1, micro-batch 0,
// assigns y = activations::h.1.ln_1". Waits for each operation, and copies its results to the host.
class NonFiniteSearch {
 public:
  explicit NonFiniteSearch(Resources& resources) : resources_(resources) {}
  // `op` has been issued; `first_row` as in OpCall.
  void look(const Op& op, const Task& task, int64_t first_row);
  const NonFinite& found() const { return found_; }

 private:
  bool is_finite(const Op& op, const Task& task, const SlotSpec& spec, int64_t first_row) const;

  Resources& resources_;
  NonFinite found_;
};

}  // namespace gptbench
