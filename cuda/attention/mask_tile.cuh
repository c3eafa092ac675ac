// Factors of dropout for the elements of a fragment as the tensor cores leave it (mma.cuh): element
// e of lane 4 g + t stands in row g + 8 (e / 2), column 2 t + e % 2. Four keys side by side share
// the words of one Philox block: each lane computes one block for the four elements that it holds,
// and lanes exchange words.
#pragma once

#include "cuda/attention/scores.cuh"
#include "cuda/kernels/reduce.cuh"

namespace gptbench::cuda {

__device__ inline PhiloxWords mask_words(const Scores& scores, int64_t head, int64_t q_position,
                                         int64_t k_position) {
  const uint64_t element = static_cast<uint64_t>(
      (head * scores.s.global.T + q_position) * scores.s.global.T + k_position);
  return random_words(seed_of(scores.mask.dropout), RandomStream::dropout,
                      scores.mask.dropout.instance, element / 4);
}
__device__ inline float factor_of(const Scores& scores, uint32_t word) {
  return uniform_of(word) >= scores.mask.threshold ? scores.mask.scale : 0.0f;
}

// Rows are queries, columns keys: `i` is that of row 0, `j` of column 0.
__device__ inline void mask_of_keys_in_columns(float (&factor)[4], const Scores& scores, int64_t b,
                                               int64_t h, int i, int j) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int rows[2] = {scores.q_at(i + lane / 4), scores.q_at(i + lane / 4 + 8)};
  if (!scores.in_fours) {
    GPTBENCH_UNROLL
    for (int e = 0; e < 4; ++e)
      factor[e] = scores.dropped(b, h, rows[e / 2], scores.k_at(j + 2 * (lane % 4) + e % 2));
    return;
  }
  // Lanes 2 u and 2 u + 1 hold four keys of two rows: one computes the words of the upper row, the
  // other those of the lower.
  const bool lower = lane % 2 != 0;
  const PhiloxWords mine = mask_words(scores, scores.mask_head(b, h), lower ? rows[1] : rows[0],
                                      scores.k_at(j + lane % 4 / 2 * 4));
  const uint32_t first = __shfl_xor_sync(full_warp, lower ? mine.word[0] : mine.word[2], 1);
  const uint32_t second = __shfl_xor_sync(full_warp, lower ? mine.word[1] : mine.word[3], 1);
  factor[0] = factor_of(scores, lower ? first : mine.word[0]);
  factor[1] = factor_of(scores, lower ? second : mine.word[1]);
  factor[2] = factor_of(scores, lower ? mine.word[2] : first);
  factor[3] = factor_of(scores, lower ? mine.word[3] : second);
}

// Rows are keys, columns queries: `j` is that of row 0, `i` of column 0.
__device__ inline void mask_of_keys_in_rows(float (&factor)[4], const Scores& scores, int64_t b,
                                            int64_t h, int i, int j) {
  const int lane = static_cast<int>(threadIdx.x) % 32, column = 2 * (lane % 4);
  if (!scores.in_fours) {
    GPTBENCH_UNROLL
    for (int e = 0; e < 4; ++e)
      factor[e] = scores.dropped(b, h, scores.q_at(i + column + e % 2),
                                 scores.k_at(j + lane / 4 + e / 2 * 8));
    return;
  }
  // Four lanes, 4 apart, hold four keys of two columns, in the upper rows and in the lower: number
  // k computes the words of element k of all of them, which are then transposed.
  const int number = lane / 4 % 4;
  PhiloxWords words =
      mask_words(scores, scores.mask_head(b, h), scores.q_at(i + column + number % 2),
                 scores.k_at(j + lane / 16 * 4 + number / 2 * 8));
  GPTBENCH_UNROLL
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (number & bit) == 0;
    GPTBENCH_UNROLL
    for (int k = 0; k < 4; ++k) {
      if ((k & bit) != 0) continue;
      const uint32_t given = upper ? words.word[k | bit] : words.word[k];
      const uint32_t taken = __shfl_xor_sync(full_warp, given, 4 * bit);
      (upper ? words.word[k | bit] : words.word[k]) = taken;
    }
  }
  GPTBENCH_UNROLL
  for (int e = 0; e < 4; ++e) factor[e] = factor_of(scores, words.word[e]);
}

}  // namespace gptbench::cuda
