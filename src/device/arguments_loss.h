// Arguments of embeddings and of the loss. Letters, types and terms: device/kernels.h.
#pragma once

#include <cstdint>

#include "device/arguments_types.h"

namespace gptbench {

// y[r,:] = token_table[tokens[r] - first_token,:] + position_table[p,:] + type_table[types[r],:],
// p = position of row r mod T_local; a token outside [first_token, first_token + V_tp) contributes
// nothing, and position_table and type_table may be null, so that the results of tensor-parallel
// ranks add up.  Assigns y (A).
struct EmbeddingForward {
  void* y;
  const int32_t* tokens;       // [R]
  const void* token_table;     // [V_tp, C] A
  const void* position_table;  // [T, C] A
  int64_t R, T_local, C;
  int64_t first_token, V_tp;
  Positions positions = {};
  const int32_t* types = nullptr;    // [R]
  const void* type_table = nullptr;  // [types, C] A
};

// dtoken_table[tokens[r] - first_token,:] += dy[r,:],  dposition_table[p,:] += dy[r,:],
// dtype_table[types[r],:] += dy[r,:].
// Accumulates (S), rows in ascending order of r whatever the number of threads.
struct EmbeddingBackward {
  void* dtoken_table;
  void* dposition_table;  // may be null
  const void* dy;
  const int32_t* tokens;
  int64_t R, T_local, C;
  int64_t first_token, V_tp;
  Positions positions = {};
  const int32_t* types = nullptr;
  void* dtype_table = nullptr;
};

// First pass of the loss over this rank's share of the vocabulary. For each row:
//   row_max = max_j logits[r,j],  row_sum = sum_j exp(logits[r,j] - row_max),
//   target_logit = logits[r, targets[r] - first_token] or 0 where another rank holds it,
// j < V_valid; columns from V_valid on are padding. A row with a negative target is not part of the
// loss. Assigns row_max[R], row_sum[R], target_logit[R] (S).
struct CrossEntropyStatistics {
  void* row_max;
  void* row_sum;
  void* target_logit;
  const void* logits;      // [R, V_tp] A
  const int32_t* targets;  // [R]
  int64_t R, V_tp, V_valid, first_token;
};

// Statistics of the whole vocabulary from those of the tensor-parallel ranks that hold its parts.
// For each row, p over the parts:
//   row_max = max_p m_p
//   row_sum = sum_p s_p exp(m_p - row_max)
//   target_logit = sum_p t_p
// `parts` holds maxima m_p, sums s_p and target logits t_p of each part (S): arrays are `array`
// elements apart, parts are `part` elements apart.  Assigns row_max, row_sum and target_logit, [R]
// each (S).
struct CrossEntropyCombine {
  void* row_max;
  void* row_sum;
  void* target_logit;
  const void* parts;
  int64_t R, num_parts, array, part;
};

// Second pass, with the statistics of the whole vocabulary:
//   loss_sum[0] += sum_r (ln row_sum + row_max - target_logit)     (double; accumulates)
//   logits[r,j] <- dscale s (exp(logits[r,j] - row_max) / row_sum - [j = target])   in place (A);
// padding columns and rows with a negative target become 0; such rows add no loss. dscale is the
// weight of a row, 1 / (rows of the global batch with a target), multiplied by row_weight[0] where
// that is not null; s is loss_scale[0], 1 where that is null.
struct CrossEntropyFinish {
  double* loss_sum;
  void* logits;
  const void* row_max;
  const void* row_sum;
  const void* target_logit;
  const int32_t* targets;
  int64_t R, V_tp, V_valid, first_token;
  double dscale;
  const double* loss_scale = nullptr;
  const double* row_weight = nullptr;
};

// Both passes over the whole vocabulary, on the same arrays.
struct CrossEntropy {
  CrossEntropyStatistics statistics;
  CrossEntropyFinish finish;
};

}  // namespace gptbench
