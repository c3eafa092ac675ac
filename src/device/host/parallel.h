// How host kernels use Kokkos: loops over rows, tiles or blocks of elements, over raw pointers into
// the arena. Reductions never go through Kokkos, whose order depends on the number of threads.
#pragma once

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "device/host/blocking.h"

namespace gptbench::host {

using Space = Kokkos::DefaultHostExecutionSpace;

inline int64_t num_threads() {
  return Space().concurrency();
}

// f(i), i = 0 .. count - 1, in any order.
template <class Function>
void parallel(const char* name, int64_t count, const Function& f) {
  if (count <= 0) return;
  Kokkos::parallel_for(name, Kokkos::RangePolicy<Space, Kokkos::IndexType<int64_t>>(0, count),
                       [=](const int64_t i) { f(i); });
}

// f(begin, end) over [0, n) in blocks.
template <class Function>
void parallel_blocks(const char* name, int64_t n, const Function& f) {
  parallel(name, ceil_div(n, block_elements), [=](int64_t block) {
    const int64_t begin = block * block_elements;
    f(begin, std::min(n, begin + block_elements));
  });
}

}  // namespace gptbench::host
