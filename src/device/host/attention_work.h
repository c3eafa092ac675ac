// How the work of the host's attention falls into items that threads do on their own, and which
// keys a query sees. Results do not depend on the number of threads: sums over queries and keys
// have one order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "device/kernels.h"

namespace gptbench::host {

// The kernels on a given number of threads, which need that many times
// attention_workspace_bytes_per_thread().
template <class A>
void attention_forward_on(Queue&, int64_t threads, const AttentionForward&);
template <class A>
void attention_backward_on(Queue&, int64_t threads, const AttentionBackward&);

// Strips that `tiles` panels of queries, or tiles of keys, of each of `heads` heads are dealt to
// threads in: tile s, s + count and so on make strip s, so that strips weigh about the same under
// the causal mask. As few as occupy the threads to nine tenths.
inline int64_t strips_of(int64_t heads, int64_t tiles, int64_t threads) {
  for (int64_t count = 1; count < tiles; ++count) {
    const int64_t items = heads * count;
    if (10 * items >= 9 * threads * ceil_div(items, threads)) return count;
  }
  return tiles;
}

// Of n consecutive positions, those before `limit`; they come first.
inline int64_t count_before(const Positions& p, int64_t n, int64_t limit) {
  const int64_t first = std::min(n, p.split);
  const auto within = [limit](int64_t begin, int64_t count) {
    return std::min(count, std::max<int64_t>(0, limit - begin));
  };
  return within(p.begin[0], first) + within(p.begin[1], n - first);
}

// Which keys the queries of sequence b see: always the first ones of the call.
struct Visibility {
  const AttentionShape& s;
  int64_t b;

  int64_t keys_of(int64_t i) const {
    int64_t limit = INT64_MAX;
    if (s.causal) limit = position_of(s.q_positions, i) + 1;
    if (s.lengths != nullptr) limit = std::min<int64_t>(limit, s.lengths[b]);
    return count_before(s.k_positions, s.T_k, limit);
  }
  // Queries at the start of [i0, i0 + width) that do not see key j, which the last of them sees.
  int64_t hidden_queries(int64_t j, int64_t i0, int64_t width) const {
    if (!s.causal) return 0;
    const int64_t before = count_before(s.q_positions, s.T_q, position_of(s.k_positions, j));
    return std::min(width, std::max<int64_t>(0, before - i0));
  }
};

// The queries of a panel: [i0, i0 + width), all of which see the keys before `full` and none those
// from `keys` on.
struct Queries {
  int64_t i0, width;
  int64_t full, keys;
};
inline Queries queries_of(const Visibility& visible, int64_t i0, int64_t width) {
  return {i0, width, visible.keys_of(i0), visible.keys_of(i0 + width - 1)};
}

}  // namespace gptbench::host
