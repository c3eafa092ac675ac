// Code shared by all attention kernels: which keys a query sees, what is added to a score, which
// probabilities are dropped, and which tiles there is nothing to do for.
#pragma once

#include <climits>
#include <cstdint>

#include "cuda/kernels/dropout.cuh"
#include "cuda/kernels/number.cuh"
#include "device/arguments_attention.h"

namespace gptbench::cuda {

// Steps beside scaling the scores. Kernels that hold tiles in registers are compiled for each,
// since unused steps cost registers. dropout: with a bias where there is one.
enum class Extra { none, bias, dropout };
inline Extra extra_of(const AttentionShape& s) {
  return s.dropout.rate > 0.0 ? Extra::dropout : s.alibi ? Extra::bias : Extra::none;
}

// Not inlined, since unrolled loops call it for every element of a tile. Takes numbers and not a
// structure, which would be copied to the stack.
__device__ __noinline__ inline float dropout_factor(uint64_t seed, uint32_t instance,
                                                    int64_t element, float threshold, float scale) {
  const uint32_t word =
      random_word(seed, RandomStream::dropout, instance, static_cast<uint64_t>(element));
  return uniform_of(word) >= threshold ? scale : 0.0f;
}

GPTBENCH_HOST_DEVICE constexpr int narrow(int64_t x) {
  return static_cast<int>(x < INT_MAX ? x : INT_MAX);
}

// Positions in 32 bits, for the loops over scores.
struct Places {
  int begin[2], split;

  explicit Places(const Positions& p)
      : begin{narrow(p.begin[0]), narrow(p.begin[1])}, split(narrow(p.split)) {}
  GPTBENCH_HOST_DEVICE int at(int t) const {
    return t < split ? begin[0] + t : begin[1] + t - split;
  }
};

struct Scores {
  AttentionShape s;
  Places q_places, k_places;
  int T_q, T_k, D, q_row, kv_row, out_row;
  DropoutMask mask;
  float scale;
  bool adds;      // keys come in blocks: results are of type S and brought up to date
  bool in_fours;  // keys that share the words of a Philox block lie side by side
  int64_t group;  // query heads that share a key/value head

  explicit Scores(const AttentionShape& shape)
      : s(shape),
        q_places(shape.q_positions),
        k_places(shape.k_positions),
        T_q(narrow(shape.T_q)),
        T_k(narrow(shape.T_k)),
        D(narrow(shape.D)),
        q_row(narrow(shape.q.row)),
        kv_row(narrow(shape.kv.row)),
        out_row(narrow(shape.out.row)),
        mask(shape.dropout),
        scale(static_cast<float>(shape.scale)),
        adds(shape.keys != KeyBlock::all),
        in_fours(shape.global.T % 4 == 0 && in_fours_of(shape.k_positions, shape.T_k)),
        group(shape.H_kv > 0 ? shape.H / shape.H_kv : 1) {}

  static bool in_fours_of(const Positions& p, int64_t T) {
    return p.begin[0] % 4 == 0 && (p.split >= T || (p.split % 4 == 0 && p.begin[1] % 4 == 0));
  }

  // Where elements lie.
  GPTBENCH_HOST_DEVICE int64_t q(int64_t b, int64_t h, int64_t i) const {
    return b * s.q.step + i * s.q.row + h * s.D;
  }
  GPTBENCH_HOST_DEVICE int64_t kv(int64_t b, int64_t h_kv, int64_t j) const {
    return b * s.kv.step + j * s.kv.row + h_kv * s.D;
  }
  GPTBENCH_HOST_DEVICE int64_t out(int64_t b, int64_t h, int64_t i) const {
    return b * s.out.step + i * s.out.row + h * s.D;
  }
  GPTBENCH_HOST_DEVICE int64_t lse(int64_t b, int64_t h, int64_t i) const {
    return (b * s.H + h) * s.lse_step + i;
  }

  // The first position that no query of sequence b may see.
  GPTBENCH_HOST_DEVICE int length(int64_t b) const {
    return s.lengths != nullptr ? s.lengths[b] : INT_MAX;
  }
  GPTBENCH_HOST_DEVICE int q_at(int i) const { return q_places.at(i); }
  GPTBENCH_HOST_DEVICE int k_at(int j) const { return k_places.at(j); }
  GPTBENCH_HOST_DEVICE bool visible(int q_position, int k_position, int length) const {
    return k_position < length && (!s.causal || k_position <= q_position);
  }
  // Whether no pair, or every pair, of queries [i0, i1) and keys [j0, j1) is visible. Neither range
  // is empty; positions ascend.
  GPTBENCH_HOST_DEVICE bool none_visible(int i1, int j0, int length) const {
    return !visible(q_at(i1 - 1), k_at(j0), length);
  }
  GPTBENCH_HOST_DEVICE bool all_visible(int i0, int j1, int length) const {
    return visible(q_at(i0), k_at(j1 - 1), length);
  }

  // Whether rows [t, t + n) stand at consecutive positions.
  GPTBENCH_HOST_DEVICE static bool consecutive(const Places& p, int t, int n) {
    return p.at(t + n - 1) - p.at(t) == n - 1;
  }

  // Slope of head h of this rank (device/kernels.h).
  __device__ float slope(int64_t h) const {
    if (!s.alibi) return 0.0f;
    const int64_t head = s.global.first_head + h;
    int64_t n = 1;
    while (n < s.global.H) n *= 2;
    const int64_t odd = n / 2;
    const int64_t place = n == s.global.H ? head : head < odd ? 2 * head + 1 : 2 * (head - odd);
    return static_cast<float>(exp2(-8.0 * static_cast<double>(place + 1) / static_cast<double>(n)));
  }
  __device__ static float bias(float slope, int q_position, int k_position) {
    const int distance = q_position - k_position;
    return -slope * static_cast<float>(distance < 0 ? -distance : distance);
  }
  // The number of head h of sequence b among those of the global batch.
  __device__ int64_t mask_head(int64_t b, int64_t h) const { return head_of(s.global, b, h); }
  // Factor of the probability of (b, h, q_position, k_position).
  __device__ float dropped(int64_t b, int64_t h, int q_position, int k_position) const {
    return dropout_factor(seed_of(mask.dropout), mask.dropout.instance,
                          (mask_head(b, h) * s.global.T + q_position) * s.global.T + k_position,
                          mask.threshold, mask.scale);
  }
};

// Arrays of a call; Out is A, or float where keys come in blocks, or void.
template <class A, class Out>
struct ForwardArrays {
  explicit ForwardArrays(const AttentionForward& a)
      : out(static_cast<Out*>(a.out)),
        lse(static_cast<float*>(a.lse)),
        q(static_cast<const A*>(a.q)),
        k(static_cast<const A*>(a.k)),
        v(static_cast<const A*>(a.v)) {}
  Out* out;
  float* lse;
  const A *q, *k, *v;
};

// Gradient as Out. delta: see attention.cuh.
template <class A, class Gradient>
struct BackwardArrays {
  BackwardArrays(const AttentionBackward& a, const float* delta_of_rows)
      : dq(static_cast<Gradient*>(a.dq)),
        dk(static_cast<Gradient*>(a.dk)),
        dv(static_cast<Gradient*>(a.dv)),
        dout(static_cast<const A*>(a.dout)),
        q(static_cast<const A*>(a.q)),
        k(static_cast<const A*>(a.k)),
        v(static_cast<const A*>(a.v)),
        lse(static_cast<const float*>(a.lse)),
        delta(delta_of_rows),
        dq_strides(a.dq_strides),
        dkv_strides(a.dkv_strides) {}
  Gradient *dq, *dk, *dv;
  const A *dout, *q, *k, *v;
  const float *lse, *delta;
  Strides dq_strides, dkv_strides;
};

}  // namespace gptbench::cuda
