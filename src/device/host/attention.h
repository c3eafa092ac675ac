// Shared by forward and backward of the host's tiled attention: scratch memory of a thread, layouts
// of operands for fast GEMMs, biases and dropout of a tile.
//
// Tiles are held transposed, keys by a panel of queries. What belongs to a query (maximum, sum,
// lse, delta) is then a vector along the row, and every GEMM of either direction reads its factors
// as stored:
//   S^T = K Q^T, O^T += V^T P^T;   dP^T = V dO^T, dV += P^T dO, dK += dS^T Q, dQ^T += K^T dS^T.
// Factors and results are packed, in rows of any number of keys or of one panel: oneDNN first
// copies both factors of a GEMM where one of the three arrays has gaps between rows.
#pragma once

#include <type_traits>

#include "base/error.h"
#include "device/host/attention_work.h"
#include "device/host/dropout.h"
#include "device/host/gemm_onednn.h"
#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"
#include "device/host/transpose.h"
#include "plan/workspace.h"

namespace gptbench::host {

// Hands out arrays from one thread's part of the workspace.
class Scratch {
 public:
  Scratch(const Workspace& workspace, int64_t thread, int64_t bytes_per_thread)
      : next_(static_cast<char*>(workspace.data) + thread * bytes_per_thread),
        end_(next_ + bytes_per_thread) {}

  template <class T>
  T* take(int64_t elements) {
    T* const array = reinterpret_cast<T*>(next_);
    next_ += round_up(elements * static_cast<int64_t>(sizeof(T)), 64);
    GPTBENCH_CHECK(next_ <= end_, "attention workspace");
    return array;
  }
  Workspace take_gemm_workspace() {
    return {take<char>(attention_gemm_bytes), attention_gemm_bytes};
  }

 private:
  char* next_;
  char* end_;
};

// f(item, scratch) for items 0 .. items - 1, distributed cyclically over the threads. Each item
// runs on one thread, including its GEMMs.
template <class Function>
void parallel_items(const char* name, int64_t threads, int64_t items, const AttentionShape& s,
                    const Workspace& workspace, const Function& f) {
  const int64_t bytes = attention_workspace_bytes_per_thread(s.T_k, s.D, sizeof(float));
  threads = std::min(threads, items);
  GPTBENCH_CHECK(threads * bytes <= workspace.bytes,
                 "attention of " + std::to_string(threads) + " threads needs " +
                     std::to_string(threads * bytes) + " bytes of workspace, there are " +
                     std::to_string(workspace.bytes));
  // Around the threads as well: the number of a BLAS's threads is one for the whole process, so
  // that the first thread to end would set it back for those still running, and the last to 1.
  const SingleThreadedGemms all;
  parallel(name, threads, [=](int64_t thread) {
    const SingleThreadedGemms single;
    for (int64_t item = thread; item < items; item += threads)
      f(item, Scratch(workspace, thread, bytes));
  });
}

// Prefetches rows of D elements that lie `row` elements apart, for writing where `write`: rows of
// one head are too short for hardware prefetchers, and their cache misses would be serial.
template <class A>
void prefetch_rows(const A* first, int64_t row, int64_t rows, int64_t D, bool write = false) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(A));
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t d = 0; d < D; d += line) {
      if (write)
        __builtin_prefetch(first + t * row + d, 1);
      else
        __builtin_prefetch(first + t * row + d, 0);
    }
}
constexpr int64_t rows_ahead = 16;

// Type F of the factors of a tile's GEMMs: A, or float where that is faster (Bf16Products) or the
// library has no GEMM of A.
template <class A>
bool converts_factors(Queue& queue) {
  return dtype_of<A>() == DType::f16 ||
         (dtype_of<A>() == DType::bf16 && bf16_products_of(queue) == Bf16Products::converted);
}

// out[rows,D] = rows that lie `row` elements apart.
template <class F, class A>
void pack_rows(F* out, const A* in, int64_t row, int64_t rows, int64_t D) {
  for (int64_t t = 0; t < rows; ++t) {
    if (t + rows_ahead < rows) prefetch_rows(in + (t + rows_ahead) * row, row, 1, D);
    const A* const from = in + t * row;
    F* const to = out + t * D;
    if constexpr (std::is_same_v<A, F>) {
      std::copy(from, from + D, to);
    } else {
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) simd::store(to[d], simd::load(from[d]));
    }
  }
}

// out[D,ld_out] = transpose of rows that lie `row` elements apart, by way of `packed`[rows,D] where
// types differ.
template <class F, class A>
void transpose_rows(F* out, int64_t ld_out, const A* in, int64_t row, int64_t rows, int64_t D,
                    [[maybe_unused]] F* packed) {
  if constexpr (std::is_same_v<A, F>) {
    transpose(out, ld_out, in, row, rows, D);
  } else {
    pack_rows(packed, in, row, rows, D);
    transpose(out, ld_out, static_cast<const F*>(packed), D, rows, D);
  }
}

// Columns [0, k) of in[rows,ld], packed where they are not.
template <class A>
const A* packed_columns(const A* in, int64_t ld, int64_t rows, int64_t k, A* buffer) {
  if (k == ld) return in;
  for (int64_t r = 0; r < rows; ++r) std::copy(in + r * ld, in + r * ld + k, buffer + r * k);
  return buffer;
}

// A factor of a tile's GEMM; rows are `ld` elements apart.
template <class A>
struct Rows {
  const A* data;
  int64_t ld;
};

// c[m,n] = a[m,k] b[k,n], or += where `accumulate`; rows of c lie n apart; f32 result.
template <class A>
void tile_gemm(float* c, int64_t m, int64_t n, int64_t k, Rows<A> a, Rows<A> b, bool accumulate,
               const Workspace& workspace) {
  Gemm gemm = make_gemm(dtype_of<A>(), {m, n, k}, {a.data, a.ld, false}, {b.data, b.ld, false},
                        {c, n, DType::f32});
  gemm.accumulate = accumulate;
  run_gemm(gemm, workspace);
}

// f(i, row i of the transpose of in[D,width]) for i = 0 .. width - 1; `buffer` holds
// attention_tile_area elements.
template <class Function>
void for_each_column(const float* in, int64_t D, int64_t width, float* buffer, const Function& f) {
  const int64_t at_once = std::max<int64_t>(1, std::min(width, attention_tile_area / D));
  for (int64_t i0 = 0; i0 < width; i0 += at_once) {
    const int64_t count = std::min(at_once, width - i0);
    transpose(buffer, D, in + i0, width, D, count);
    for (int64_t i = 0; i < count; ++i) f(i0 + i, static_cast<const float*>(buffer + i * D));
  }
}

constexpr float log2_e = 1.44269504088896340736f;
constexpr float ln_2 = 0.69314718055994530942f;

// The linear bias of one tile's scores, in units of ln 2: -slope |position of query - of key|.
// Positions up to 2^24 are exact.
struct LinearBias {
  float slope = 0.0f;
  float position[attention_tile_queries];  // of the queries

  void start(const AttentionShape& s, int64_t h, const Queries& queries) {
    slope = static_cast<float>(alibi_slope(s.global.first_head + h, s.global.H)) * log2_e;
    for (int64_t i = 0; i < queries.width; ++i)
      position[i] = static_cast<float>(position_of(s.q_positions, queries.i0 + i));
  }
  // scores[i] = factor scores[i] + bias of key j, one row of a tile.
  void add(float* scores, float factor, const AttentionShape& s, int64_t j, int64_t width) const {
    const float key = static_cast<float>(position_of(s.k_positions, j));
    const float a = slope;
    const float* const at = position;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) scores[i] = factor * scores[i] - a * std::abs(at[i] - key);
  }
};

// Dropout factors of one tile of head h of sequence b.
class TileFactors {
 public:
  TileFactors(const AttentionShape& s, int64_t b, int64_t h)
      : factors_(s.dropout), s_(s), head_(head_of(s.global, b, h)) {}

  // out[rows keys, width queries]: element (head T + position of query) T + position of key.
  void fill(float* out, const Queries& queries, int64_t j0, int64_t rows) const {
    const int64_t width = queries.width;
    int64_t row[attention_tile_queries], element[attention_tile_queries];
    for (int64_t i = 0; i < width; ++i)
      row[i] = (head_ * s_.global.T + position_of(s_.q_positions, queries.i0 + i)) * s_.global.T;
    for (int64_t j = j0; j < j0 + rows;) {
      const int64_t key = position_of(s_.k_positions, j);
      // Four keys in a row share the words of one block of random numbers.
      const bool four = s_.global.T % 4 == 0 && key % 4 == 0 && j + 4 <= j0 + rows &&
                        position_of(s_.k_positions, j + 3) == key + 3;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) element[i] = row[i] + key;
      float* const at = out + (j - j0) * width;
      if (four)
        factors_.fill_fours(at, width, element, width);
      else
        factors_.fill_elements(at, element, width);
      j += four ? 4 : 1;
    }
  }

 private:
  DropoutFactors factors_;
  const AttentionShape& s_;
  int64_t head_;
};

}  // namespace gptbench::host
