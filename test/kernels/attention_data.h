// Inputs and results of an attention call as the engine lays them out, for tests of any device: of
// whole sequences, and of the ranks of a ring that hold pieces of them.
#pragma once

#include <cmath>
#include <type_traits>
#include <utility>

#include "kernel_test.h"

namespace gptbench::test {

struct AttentionCase {
  int64_t B, T, H, H_kv, D;
  bool causal = true;
  double dropout = 0.0;
  bool alibi = false;
  std::vector<int32_t> lengths = {};  // B of them, or none
  int64_t T_q = T, T_k = T;           // of a call: the first ones of each sequence
  int64_t first_sequence = 5;         // of the global batch
};

inline void PrintTo(const AttentionCase& c, std::ostream* out) {
  *out << "B " << c.B << " T " << c.T << " H " << c.H << " / " << c.H_kv << " D " << c.D
       << (c.causal ? ", causal" : "") << (c.alibi ? ", alibi" : "")
       << (c.lengths.empty() ? "" : ", lengths") << ", dropout " << c.dropout;
  if (c.T_q != c.T || c.T_k != c.T) *out << ", queries " << c.T_q << ", keys " << c.T_k;
}

// `x` with `behind` NaN in the memory behind its end, which show where a kernel reads there.
template <class T>
std::vector<T> with_nan_behind(std::vector<T> x, int64_t behind) {
  const size_t size = x.size();
  T nan{};
  assign(nan, std::nan(""));
  x.resize(size + static_cast<size_t>(behind), nan);
  x.resize(size);
  return x;
}
constexpr int64_t largest_attention_tile = 128;  // rows

// Type of statistics beside activations of type A.
template <class A>
using StatisticsOf = std::conditional_t<sizeof(A) == 8, double, float>;

// q, k and v stand side by side in rows, with room to spare: an odd number of elements, so that
// rows are not aligned, or as many as leave them so.
template <class A>
struct AttentionData {
  using S = StatisticsOf<A>;

  explicit AttentionData(const AttentionCase& c_, bool aligned = false)
      : c(c_),
        row((c.H + 2 * c.H_kv) * c.D + (aligned ? 8 : 3)),
        out_row(c.H * c.D + (aligned ? 16 : 5)),
        qkv(with_nan_behind(random_array<A>(c.B * c.T * row, 1), largest_attention_tile * row)),
        dout(with_nan_behind(random_array<A>(c.B * c.T * out_row, 2),
                             largest_attention_tile * out_row)),
        out(dout.size(), A(0.0f)),
        dqkv(qkv.size(), A(0.0f)),
        lse(static_cast<size_t>(c.B * c.H * c.T)) {}

  AttentionShape shape() const {
    AttentionShape s = whole_sequences(c.B, c.T, c.H, c.H_kv, c.D, row, row, out_row);
    s.T_q = c.T_q;
    s.T_k = c.T_k;
    s.causal = c.causal;
    s.alibi = c.alibi;
    s.lengths = c.lengths.empty() ? nullptr : c.lengths.data();
    s.dropout = dropout;
    s.global = {c.first_sequence, 1, c.H + 2, c.T};
    return s;
  }
  int64_t k_at() const { return c.H * c.D; }
  int64_t v_at() const { return (c.H + c.H_kv) * c.D; }

  void forward(const KernelTable& kernels, Queue& queue, const Workspace& workspace) {
    const A* q = qkv.data();
    kernels.attention_forward(
        queue, {out.data(), lse.data(), q, q + k_at(), q + v_at(), shape(), workspace});
  }
  void backward(const KernelTable& kernels, Queue& queue, const Workspace& workspace) {
    const A* q = qkv.data();
    A* dq = dqkv.data();
    const Strides in_qkv = {row, c.T * row};
    kernels.attention_backward(
        queue, {dq, dq + k_at(), dq + v_at(), dout.data(), q, q + k_at(), q + v_at(), out.data(),
                lse.data(), shape(), in_qkv, in_qkv, workspace});
  }

  AttentionCase c;
  Dropout dropout = {c.dropout, 11, 3};
  int64_t row, out_row;
  std::vector<A> qkv, dout, out, dqkv;
  std::vector<S> lse;
};

// The same work done by `ranks` ranks that hold pieces of the sequences and see one rank's keys
// after another's, its own first. Zigzag: T falls into 2 `ranks` pieces, rank r has r and the r-th
// from the end. Results are collected where `whole` has them: out and dq, dk, dv of type S.
template <class A>
struct RingAttention {
  using S = StatisticsOf<A>;

  RingAttention(const AttentionData<A>& whole_, int64_t ranks_, bool zigzag_)
      : whole(whole_),
        ranks(ranks_),
        zigzag(zigzag_),
        T_local(whole.c.T / ranks),
        out(whole.out.size()),
        lse(whole.lse.size()),
        dqkv(whole.qkv.size()) {}

  Positions positions(int64_t rank) const {
    if (!zigzag) return {{rank * T_local, 0}, INT64_MAX};
    const int64_t piece = T_local / 2;
    return {{rank * piece, (2 * ranks - 1 - rank) * piece}, piece};
  }

  // Rows of `rank` out of those of whole sequences, each `width` wide; and back.
  template <class T>
  std::vector<T> pick(const std::vector<T>& from, int64_t width, int64_t rank) const {
    std::vector<T> rows(static_cast<size_t>(whole.c.B * T_local * width));
    for (int64_t b = 0; b < whole.c.B; ++b)
      for (int64_t t = 0; t < T_local; ++t)
        std::copy_n(from.begin() + (b * whole.c.T + position_of(positions(rank), t)) * width, width,
                    rows.begin() + (b * T_local + t) * width);
    return with_nan_behind(std::move(rows), largest_attention_tile * width);
  }
  template <class T>
  void put(std::vector<T>& to, const std::vector<T>& rows, int64_t width, int64_t rank) const {
    for (int64_t b = 0; b < whole.c.B; ++b)
      for (int64_t t = 0; t < T_local; ++t)
        std::copy_n(rows.begin() + (b * T_local + t) * width, width,
                    to.begin() + (b * whole.c.T + position_of(positions(rank), t)) * width);
  }

  AttentionShape shape(int64_t rank, int64_t from) const {
    AttentionShape s = whole.shape();
    s.T_q = s.T_k = s.lse_step = T_local;
    s.q.step = s.kv.step = T_local * whole.row;
    s.out.step = T_local * whole.out_row;
    s.q_positions = positions(rank);
    s.k_positions = positions(from);
    return s;
  }

  void forward(const KernelTable& kernels, Queue& queue, const Workspace& workspace) {
    const int64_t heads = whole.c.B * whole.c.H;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const std::vector<A> q = pick(whole.qkv, whole.row, rank);
      std::vector<S> rank_out(static_cast<size_t>(whole.c.B * T_local * whole.out_row), S(77));
      std::vector<S> rank_lse(static_cast<size_t>(heads * T_local), S(77));
      for (int64_t step = 0; step < ranks; ++step) {
        const int64_t from = (rank + ranks - step) % ranks;
        const std::vector<A> kv = pick(whole.qkv, whole.row, from);
        AttentionShape s = shape(rank, from);
        s.keys = step == 0 ? KeyBlock::first : KeyBlock::further;
        kernels.attention_forward(
            queue, {rank_out.data(), rank_lse.data(), q.data(), kv.data() + whole.k_at(),
                    kv.data() + whole.v_at(), s, workspace});
      }
      put(out, rank_out, whole.out_row, rank);
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t t = 0; t < T_local; ++t)
          lse[static_cast<size_t>(head * whole.c.T + position_of(positions(rank), t))] =
              rank_lse[static_cast<size_t>(head * T_local + t)];
    }
  }

  // Reads out, dout and lse of `whole`.
  void backward(const KernelTable& kernels, Queue& queue, const Workspace& workspace) {
    const int64_t heads = whole.c.B * whole.c.H, row = whole.row;
    std::vector<std::vector<S>> gradients(
        static_cast<size_t>(ranks), std::vector<S>(static_cast<size_t>(whole.c.B * T_local * row)));
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const std::vector<A> q = pick(whole.qkv, row, rank),
                           rank_out = pick(whole.out, whole.out_row, rank),
                           rank_dout = pick(whole.dout, whole.out_row, rank);
      std::vector<S> rank_lse(static_cast<size_t>(heads * T_local));
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t t = 0; t < T_local; ++t)
          rank_lse[static_cast<size_t>(head * T_local + t)] =
              whole.lse[static_cast<size_t>(head * whole.c.T + position_of(positions(rank), t))];
      for (int64_t step = 0; step < ranks; ++step) {
        const int64_t from = (rank + ranks - step) % ranks;
        const std::vector<A> kv = pick(whole.qkv, row, from);
        S* const dq = gradients[static_cast<size_t>(rank)].data();
        S* const dkv = gradients[static_cast<size_t>(from)].data();
        AttentionShape s = shape(rank, from);
        s.keys = step == 0 ? KeyBlock::first : KeyBlock::further;
        const Strides in_qkv = {row, T_local * row};
        kernels.attention_backward(
            queue, {dq, dkv + whole.k_at(), dkv + whole.v_at(), rank_dout.data(), q.data(),
                    kv.data() + whole.k_at(), kv.data() + whole.v_at(), rank_out.data(),
                    rank_lse.data(), s, in_qkv, in_qkv, workspace});
      }
    }
    for (int64_t rank = 0; rank < ranks; ++rank)
      put(dqkv, gradients[static_cast<size_t>(rank)], row, rank);
  }

  const AttentionData<A>& whole;
  int64_t ranks;
  bool zigzag;
  int64_t T_local;
  std::vector<S> out, lse, dqkv;
};

}  // namespace gptbench::test
