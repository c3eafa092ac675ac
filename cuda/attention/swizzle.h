// The layout of tiles in shared memory that ldmatrix reads.
#pragma once

#include "base/host_device.h"

namespace gptbench::cuda {

// Where 16 bytes `chunk` of row `row` of a tile with D elements of 2 bytes per row lie, in
// elements: chunks change places within a row so that the same chunk of 8 consecutive rows falls
// into all 32 banks once.
template <int D>
GPTBENCH_HOST_DEVICE constexpr int swizzled(int row, int chunk) {
  static_assert(D % 64 == 0, "rows of at least 8 chunks");
  return row * D + ((chunk ^ (row & 7)) * 8);
}

}  // namespace gptbench::cuda
