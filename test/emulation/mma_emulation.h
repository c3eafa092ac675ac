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

// What lane l holds of c[16][8] += a[16][16] b[16][8]; a word has two neighbouring elements of 16
// bits. a, c: row l / 4, and 8 more in odd words of a and the last two elements of c. b: column
// l / 4. The other index begins at 2 (l % 4); in the last two words of a, the last of b, 8 later.
struct Fragments {
  uint32_t a[4], b[2];
  float c[4];
};

// For the whole warp at once, each sum in the order of k. Leaves each lane its part of c.
template <class A>
void multiply_fragments(emulation::Lane* lanes) {
  using Row = float __attribute__((vector_size(32)));
  float a[16][16];
  Row b[16], c[16];
  for (int lane = 0; lane < emulation::warp_size; ++lane) {
    const auto f = emulation::from_lane<Fragments>(lanes, lane);
    const int row = lane / 4, pair = 2 * (lane % 4);
    for (int e = 0; e < 2; ++e) {
      for (int i = 0; i < 4; ++i) a[row + i % 2 * 8][pair + i / 2 * 8 + e] = half_of<A>(f.a[i], e);
      for (int i = 0; i < 2; ++i) b[pair + i * 8 + e][row] = half_of<A>(f.b[i], e);
      for (int i = 0; i < 2; ++i) c[row + i * 8][pair + e] = f.c[2 * i + e];
    }
  }
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k) c[row] += a[row][k] * b[k];
  for (int lane = 0; lane < emulation::warp_size; ++lane) {
    const int row = lane / 4, pair = 2 * (lane % 4);
    const float own[4] = {c[row][pair], c[row][pair + 1], c[row + 8][pair], c[row + 8][pair + 1]};
    std::memcpy(lanes[lane].bytes, own, sizeof own);
  }
}

template <class A>
void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, GPTBENCH_HERE) {
  const Fragments mine{{a[0], a[1], a[2], a[3]}, {b0, b1}, {c[0], c[1], c[2], c[3]}};
  const emulation::Lane* lanes =
      emulation::warp_exchange(emulation::lane_of(mine), file, line, multiply_fragments<A>);
  std::memcpy(c, lanes[emulation::lane_index()].bytes, sizeof c);
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
