// Context parallelism: how the positions of a sequence lie over the ranks of the context axis, and
// which part of the attention each step of the ring forms.
#pragma once

#include <cstdint>

namespace gptbench {

// Positions of consecutive rows of one sequence: row t < split stands at begin[0] + t, the others
// at begin[1] + t - split. Kernels know it as Positions (device/arguments_types.h).
struct HeldPositions {
  int64_t begin[2] = {0, 0};
  int64_t split = INT64_MAX;
};

// A sequence of T positions is cut into 2 c equal chunks; rank r of c holds chunks r and 2 c - 1 -
// r, as in Llama 3 (arXiv:2407.21783, section 3.3.2). Early positions see few keys, late ones many:
// so under the causal mask all ranks have the same work. T divides by 2 c, or c = 1. Example, T =
// 16, c = 2: rank 0 holds 0-3 and 12-15, rank 1 holds 4-11.
HeldPositions held_positions(int64_t T, int64_t context_ranks, int64_t rank);

// Queries of this rank by keys of rank `keys_of`, rows counted within the T / c of a sequence that
// a rank holds.
struct AttentionBlock {
  int64_t first_query = 0, queries = 0;
  int64_t first_key = 0, keys = 0;
  bool masked = false;  // the causal mask hides some of the pairs, else none
};

// Under the causal mask, r the querying rank:
//   keys_of = r   all queries, all keys, masked
//   keys_of < r   all queries, the first half of the keys; the second half is later than all
//   keys_of > r   the second half of the queries, all keys; the first half is earlier than all
// Half of a block either way: every step costs every rank the same.
AttentionBlock attention_block(int64_t T, int64_t context_ranks, int64_t rank, int64_t keys_of,
                               bool causal);

}  // namespace gptbench
