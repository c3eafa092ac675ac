// Weights of this rank: drawn at set-up, read for dumps and verification. Local; outside of steps.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/resources.h"

namespace gptbench {

// Draws the weights, a function of (seed, tensor, global element) alone; sets the first scales of
// fp8, the loss scale of fp16.
void initialise_weights(Resources& resources);

// Elements [first, first + count) of tensor `tensor` in the representation of `role`, as double, as
// far as this rank is the one that counts them; 0 elsewhere, so that the sum over all ranks is the
// tensor. Gradients are divided by `gradient_scale`, which those in memory carry.
std::vector<double> read_tensor(Resources& resources, Role role, int tensor, int64_t first,
                                int64_t count, double gradient_scale);

// A hash of all bits of each of this rank's working parameters, [local tensor].
std::vector<uint64_t> checksums_of_tensors(Resources& resources);
// What one pass over this rank's working parameters tells.
struct WeightsDigest {
  uint64_t hash;  // of all bits
  bool finite;    // none is NaN or infinite
};
WeightsDigest digest_of_weights(Resources& resources);

}  // namespace gptbench
