// How the host's attention is divided among threads, and which keys a query sees. Results do not
// depend on the number of threads: the order of sums over queries and keys is fixed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "device/kernels.h"

namespace gptbench::host {

// The kernels on `threads` threads; their workspace holds that many times
// attention_workspace_bytes_per_thread().
template <class A>
void attention_forward_on(Queue&, int64_t threads, const AttentionForward&);
template <class A>
void attention_backward_on(Queue&, int64_t threads, const AttentionBackward&);

// Number of strips that the `tiles` panels of queries, or tiles of keys, of each head are divided
// into: strip s of n holds tiles s, s + n, ..., so that strips have similar work under the causal
// mask. The smallest number that keeps nine tenths of the threads busy.
inline int64_t strips_of(int64_t heads, int64_t tiles, int64_t threads) {
  for (int64_t count = 1; count < tiles; ++count) {
    const int64_t items = heads * count;
    if (10 * items >= 9 * threads * ceil_div(items, threads)) return count;
  }
  return tiles;
}

// Number of positions below `limit` among the first n rows, which are ascending.
inline int64_t count_before(const Positions& p, int64_t n, int64_t limit) {
  const int64_t first = std::min(n, p.split);
  const auto within = [limit](int64_t begin, int64_t count) {
    return std::min(count, std::max<int64_t>(0, limit - begin));
  };
  return within(p.begin[0], first) + within(p.begin[1], n - first);
}

// The keys that queries of sequence b see: always the first ones of the call.
struct Visibility {
  const AttentionShape& s;
  int64_t b;

  int64_t keys_of(int64_t i) const {
    int64_t limit = INT64_MAX;
    if (s.causal) limit = position_of(s.q_positions, i) + 1;
    if (s.lengths != nullptr) limit = std::min<int64_t>(limit, s.lengths[b]);
    return count_before(s.k_positions, s.T_k, limit);
  }
  // Causal attention: number of queries at the start of [i0, i0 + width) that do not see key j,
  // given that the last one does.
  int64_t hidden_queries(int64_t j, int64_t i0, int64_t width) const {
    const int64_t before = count_before(s.q_positions, s.T_q, position_of(s.k_positions, j));
    return std::min(width, std::max<int64_t>(0, before - i0));
  }
};

// A panel of queries [i0, i0 + width): all see the keys before `full`, none those from `keys` on.
struct Queries {
  int64_t i0, width;
  int64_t full, keys;
};
inline Queries queries_of(const Visibility& visible, int64_t i0, int64_t width) {
  return {i0, width, visible.keys_of(i0), visible.keys_of(i0 + width - 1)};
}

}  // namespace gptbench::host
