// Sequences that are shorter than T and filled up with padding (data.short_seq_prob).
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace gptbench {

// Token at the positions from a sequence's length on: [PAD] of BERT's vocabulary. No kernel's
// result depends on which it is: padding is not seen as a key and has no target.
constexpr int32_t padding_token = 0;

// Tokens of global sequence `sequence`, the special ones included; T >= 8. With probability
// `short_seq_prob` they are 3 + n, n drawn evenly from 2 .. T - 3, as Megatron-LM draws the length
// of the two segments; else T. A function of (seed, sequence) alone, so that every rank knows the
// length of every sequence without asking the others. Random words 2 s and 2 s + 1 of instance 1 of
// RandomStream::masking.
int64_t length_of_sequence(double short_seq_prob, uint64_t seed, int64_t T, int64_t sequence);
// The same of a resolved deck.
int64_t length_of_sequence(const Config& config, int64_t sequence);

// Mean share of positions that are padding.
double padded_share(const Config& config);

// Rows that have a target in the global batch that begins with global sequence `first`. Takes the
// time of global_batch_size random numbers where sequences are padded.
int64_t targets_of_batch(const Plan& plan, int64_t first);

}  // namespace gptbench
