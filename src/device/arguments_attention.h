// Arguments of attention and of rotary positions. Letters, types and terms: device/kernels.h.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/arguments_types.h"

namespace gptbench {

// Keys of one call of attention. `all`: every key of the sequence. Ring attention (Liu et al.,
// arXiv:2310.01889) calls once per block of keys: `first` assigns the results, `further` updates
// those over the earlier blocks.
enum class KeyBlock { all, first, further };

// Strides of an array of attention in elements: from one position to the next (heads are D apart),
// and from one sequence to the next.
struct Strides {
  int64_t row = 0, step = 0;
};

// Where the heads of a call lie in the global batch: H heads per sequence, T positions.
struct GlobalHeads {
  int64_t first_sequence = 0, first_head = 0;
  int64_t H = 1, T = 0;
};
// Head h of sequence b among those of the global batch [sequence, head].
GPTBENCH_HOST_DEVICE constexpr int64_t head_of(const GlobalHeads& g, int64_t b, int64_t h) {
  return (g.first_sequence + b) * g.H + g.first_head + h;
}

// Sizes and masks of attention, forward and backward. Query i has position q_positions(i), key j
// k_positions(j).
struct AttentionShape {
  int64_t B = 0, T_q = 0, T_k = 0, H = 0, H_kv = 0, D = 0;
  Strides q, kv, out;
  int64_t lse_step = 0;  // from one head of lse to the next, in elements
  double scale = 1.0;
  bool causal = true;                // keys at later positions than the query are masked
  bool alibi = false;                // adds -slope(head) |position of query - position of key|
  const int32_t* lengths = nullptr;  // [B]: keys at positions >= lengths[b] are masked; may be null
  Positions q_positions, k_positions;
  KeyBlock keys = KeyBlock::all;
  Dropout dropout;
  GlobalHeads global;
};

// Whole sequences whose positions follow one another in memory; scale 1 / sqrt(D), causal.
inline AttentionShape whole_sequences(int64_t B, int64_t T, int64_t H, int64_t H_kv, int64_t D,
                                      int64_t q_row, int64_t kv_row, int64_t out_row) {
  AttentionShape s;
  s.B = B;
  s.T_q = s.T_k = s.global.T = s.lse_step = T;
  s.H = s.global.H = H;
  s.H_kv = H_kv;
  s.D = D;
  s.q = {q_row, T * q_row};
  s.kv = {kv_row, T * kv_row};
  s.out = {out_row, T * out_row};
  s.scale = 1.0 / std::sqrt(static_cast<double>(D));
  return s;
}

// Slope of head h of H in the linear bias (Press et al., arXiv:2108.12409): 2^(-8 (h + 1) / n), n
// the power of two at or above H; where H is not one, the odd-numbered slopes of that sequence
// first, then the others, as MPT has it.
double alibi_slope(int64_t h, int64_t H);

// Exact attention in tiles (Dao et al., arXiv:2205.14135), memory linear in T:
//   out[b,i,h,:] = sum_j dropout(P)[i,j] v[b,j,h',:],
//   P = softmax over the unmasked j of (scale q_i . k_j + bias),
// query head h reads key/value head h' = h / (H / H_kv). Assigns out (A) and lse[B,H,T_q] (S), the
// natural logarithm of the sum of exp of the scores. Keys `first`: out is of type S. `further`: out
// (S) and lse hold the results over earlier keys, and are updated to include these keys.
// A query without an unmasked key: out 0, lse -inf.
// Dropout's element index is (head_of(global, b, h) T + position of the query) T + position of the
// key, T that of `global`.
// FLOPs: 4 B T_q T_k H D (half where causal, convention `causal`).
struct AttentionForward {
  void* out;
  void* lse;
  const void* q;
  const void* k;
  const void* v;
  AttentionShape shape;
  Workspace workspace;
};

// Gradients of AttentionForward; `out` (A) and lse are those over all keys. Assigns dq, dk and dv
// (A). Keys `first` and `further`: dq, dk and dv are of type S and added to.
// FLOPs: 8 B T_q T_k H D (half where causal), without the recomputation of q k^T.
struct AttentionBackward {
  void* dq;
  void* dk;
  void* dv;
  const void* dout;  // laid out as out
  const void* q;
  const void* k;
  const void* v;
  const void* out;
  const void* lse;
  AttentionShape shape;
  Strides dq_strides, dkv_strides;
  Workspace workspace;
};

// Rotary position embedding (Su et al., arXiv:2104.09864), in place: elements d and d + D/2 of each
// head of x are rotated by the angle position theta^(-2d/D), d < D/2 (paired as in Llama's
// published weights); `inverse` rotates back, which is the gradient. x is [R, heads, D] (A), rows
// `row` elements apart; row r is row r mod T_local of its sequence.
struct Rotary {
  void* x;
  int64_t R, heads, D, row;
  double theta;
  bool inverse;
  int64_t T_local;
  Positions positions;
};

}  // namespace gptbench
