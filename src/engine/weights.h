// Weights of this rank: drawn at set-up, read for dumps and verification. Local; outside of steps.
#pragma once

#include <array>
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

// What one pass over this rank's working parameters tells.
struct WeightsDigest {
  std::vector<uint64_t> tensors;  // a hash of all bits of each, [local tensor]
  bool finite = true;             // none is NaN or infinite
};
WeightsDigest digest_of_weights(Resources& resources);

// A hash of what this rank holds and others hold as well, of which `first_rank` is the first; this
// rank, where none does.
struct HashOfCopies {
  int64_t first_rank = 0;
  uint64_t hash = 0;
};
// [0]: all tensors, which replicas hold. [1]: those that tensor parallelism does not split.
// [2]: an embedding that first and last stage share. `tensors`: as in WeightsDigest.
std::array<HashOfCopies, 3> hashes_of_copies(const Plan& plan,
                                             const std::vector<uint64_t>& tensors);

}  // namespace gptbench
