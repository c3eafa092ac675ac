// The tensor-core instructions of cuda/attention/mma.cuh on the emulation: collectives of a warp
// whose fragments lie in its lanes as the PTX manual lays them out (mma.m16n8k16, ldmatrix).
#pragma once

#include "base/dtype.h"
#include "emulation/cuda_emulation.h"

namespace gptbench::cuda {

template <class A>
float half_of(uint32_t word, int upper) {
  A x;
  x.bits = static_cast<uint16_t>(upper != 0 ? word >> 16 : word & 0xffffu);
  return static_cast<float>(x);
}

// Lane l hands over the address of row l % 8 of matrix l / 8; each row is 8 elements of 16 bits.
inline const uint16_t* matrix_row(const emulation::Lane* lanes, int matrix, int row) {
  return emulation::from_lane<const uint16_t*>(lanes, 8 * matrix + row);
}

inline const emulation::Lane* exchange_rows(const void* row, const char* file, int line) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) emulation::fail("ldmatrix of an unaligned row");
  return emulation::warp_exchange(emulation::lane_of(row), file, line);
}

inline void ldmatrix_x4(uint32_t (&r)[4], const void* row, GPTBENCH_HERE) {
  const emulation::Lane* lanes = exchange_rows(row, file, line);
  const int lane = emulation::lane_index();
  for (int m = 0; m < 4; ++m)
    std::memcpy(&r[m], matrix_row(lanes, m, lane / 4) + 2 * (lane % 4), sizeof r[m]);
}

inline void ldmatrix_x4_transposed(uint32_t (&r)[4], const void* row, GPTBENCH_HERE) {
  const emulation::Lane* lanes = exchange_rows(row, file, line);
  const int lane = emulation::lane_index();
  for (int m = 0; m < 4; ++m) {
    const uint32_t low = matrix_row(lanes, m, 2 * (lane % 4))[lane / 4];
    const uint32_t high = matrix_row(lanes, m, 2 * (lane % 4) + 1)[lane / 4];
    r[m] = low | high << 16;
  }
}

template <class A>
void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, GPTBENCH_HERE) {
  struct Fragments {  // as numbers: each lane converts its own
    float a[8], b[4];
  };
  Fragments mine;
  for (int i = 0; i < 8; ++i) mine.a[i] = half_of<A>(a[i / 2], i % 2);
  for (int i = 0; i < 4; ++i) mine.b[i] = half_of<A>(i < 2 ? b0 : b1, i % 2);
  const emulation::Lane* lanes = emulation::warp_exchange(emulation::lane_of(mine), file, line);
  const int lane = emulation::lane_index();
  Fragments of_row[4], of_column[2][4];
  for (int i = 0; i < 4; ++i) {
    of_row[i] = emulation::from_lane<Fragments>(lanes, lane / 4 * 4 + i);
    for (int e = 0; e < 2; ++e)
      of_column[e][i] = emulation::from_lane<Fragments>(lanes, (2 * (lane % 4) + e) * 4 + i);
  }
  for (int element = 0; element < 4; ++element) {
    const int lower_row = element / 2, column = element % 2;
    float sum = c[element];
    for (int k = 0; k < 16; ++k) {
      const float x = of_row[k % 8 / 2].a[2 * (lower_row + (k < 8 ? 0 : 2)) + k % 2];
      const float y = of_column[column][k % 8 / 2].b[2 * (k / 8) + k % 2];
      sum += x * y;
    }
    c[element] = sum;
  }
}

inline void copy_16_async(void* shared, const void* global, bool exists) {
  if (reinterpret_cast<uintptr_t>(shared) % 16 != 0 ||
      reinterpret_cast<uintptr_t>(global) % 16 != 0)
    emulation::fail("an asynchronous copy of 16 bytes that are not aligned");
  emulation::copy_later(shared, global, exists ? 16 : 0, exists ? 0 : 16);
}
inline void commit_copies() {
  emulation::commit_copies();
}
template <int pending>
void wait_for_copies() {
  emulation::wait_for_copies(pending);
}

inline float exp2_fast(float x) {
  return std::exp2(x);
}

}  // namespace gptbench::cuda
