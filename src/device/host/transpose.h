// Transposes of arrays that stay in cache, for the operands of GEMMs.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gptbench::host {

// out[c ld_out + r] = in[r ld_in + c] for r < rows, c < columns, one element after another.
template <class A>
void transpose_plain(A* out, int64_t ld_out, const A* in, int64_t ld_in, int64_t rows,
                     int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) out[c * ld_out + r] = in[r * ld_in + c];
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define GPTBENCH_HAS_SHUFFLEVECTOR
#endif
#endif

#ifdef GPTBENCH_HAS_SHUFFLEVECTOR
// Vectors of 16 bytes, which every vector unit has.
template <class Element>
struct Vector16;
template <>
struct Vector16<uint32_t> {
  static constexpr int lanes = 4;
  typedef uint32_t type __attribute__((vector_size(16)));
  static type low(type a, type b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
  static type high(type a, type b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
};
template <>
struct Vector16<uint16_t> {
  static constexpr int lanes = 8;
  typedef uint16_t type __attribute__((vector_size(16)));
  static type low(type a, type b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  static type high(type a, type b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};

// A square of as many rows as a vector has lanes: interleaving rows i and i + lanes / 2 log2(lanes)
// times transposes it.
template <class V>
[[gnu::always_inline]] inline void transpose_square(void* out, int64_t out_bytes, const void* in,
                                                    int64_t in_bytes) {
  constexpr int n = V::lanes;
  typename V::type row[n], next[n];
  for (int i = 0; i < n; ++i)
    __builtin_memcpy(&row[i], static_cast<const char*>(in) + i * in_bytes, sizeof row[i]);
#pragma GCC unroll 3
  for (int done = 1; done < n; done *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = V::low(row[i], row[i + n / 2]);
      next[2 * i + 1] = V::high(row[i], row[i + n / 2]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) row[i] = next[i];
  }
  for (int i = 0; i < n; ++i)
    __builtin_memcpy(static_cast<char*>(out) + i * out_bytes, &row[i], sizeof row[i]);
}
#endif

// out[c ld_out + r] = in[r ld_in + c] for r < rows, c < columns. Lines of `out` are filled one
// after another: 64 bytes of rows at a time.
template <class A>
void transpose(A* out, int64_t ld_out, const A* in, int64_t ld_in, int64_t rows, int64_t columns) {
#ifdef GPTBENCH_HAS_SHUFFLEVECTOR
  using V = Vector16<std::conditional_t<sizeof(A) == 4, uint32_t, uint16_t>>;
  constexpr int64_t n = V::lanes, size = sizeof(A), line = 64 / size;
  const int64_t whole_rows = rows / n * n, whole_columns = columns / n * n;
  for (int64_t r0 = 0; r0 < whole_rows; r0 += line) {
    const int64_t end = r0 + line < whole_rows ? r0 + line : whole_rows;
    for (int64_t c = 0; c < whole_columns; c += n)
      for (int64_t r = r0; r < end; r += n)
        transpose_square<V>(out + c * ld_out + r, ld_out * size, in + r * ld_in + c, ld_in * size);
  }
  transpose_plain(out + whole_columns * ld_out, ld_out, in + whole_columns, ld_in, whole_rows,
                  columns - whole_columns);
  transpose_plain(out + whole_rows, ld_out, in + whole_rows * ld_in, ld_in, rows - whole_rows,
                  columns);
#else
  transpose_plain(out, ld_out, in, ld_in, rows, columns);
#endif
}

}  // namespace gptbench::host
