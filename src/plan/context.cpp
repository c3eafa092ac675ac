#include "plan/context.h"

namespace gptbench {

HeldPositions held_positions(int64_t T, int64_t context_ranks, int64_t rank) {
  if (context_ranks == 1) return {};
  const int64_t chunk = T / (2 * context_ranks);
  return {{rank * chunk, (2 * context_ranks - 1 - rank) * chunk}, chunk};
}

AttentionBlock attention_block(int64_t T, int64_t context_ranks, int64_t rank, int64_t keys_of,
                               bool causal) {
  const int64_t rows = T / context_ranks;
  AttentionBlock block{0, rows, 0, rows, causal && keys_of == rank};
  if (!causal) return block;
  if (keys_of < rank) block.keys = rows / 2;
  if (keys_of > rank) {
    block.first_query = rows / 2;
    block.queries = rows - rows / 2;
  }
  return block;
}

}  // namespace gptbench
