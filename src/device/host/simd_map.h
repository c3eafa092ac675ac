// Element-wise loops over arrays of a storage type, f32 inside.
//
// Two neighbours of bf16 lie in a word of 32 bits, and are handled together: one comes out by a
// shift and the other by a mask, and both go back with a shift and a selection of bits. Loops over
// single elements have to widen and narrow every vector, which takes units that shuffle.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/host/simd_math.h"

namespace gptbench::simd {

struct Two {
  float first, second;
};

// How a result that lies between two numbers of the storage type is rounded to the nearest. Ties
// are common among sums of stored numbers, which have few bits. What comes out of a function that
// is itself rounded falls on a tie once in 2^16, and then both neighbours are as near: there they
// may go away from zero, which takes one instruction and not four.
enum class Ties { to_even, away };

template <Ties ties>
inline uint32_t rounded_bits(float value) {
  const uint32_t u = float_to_bits(value);
  if constexpr (ties == Ties::to_even) return u + 0x7fffu + ((u >> 16) & 1u);
  return u + 0x8000u;
}

inline Two load_two(const bfloat16* in) {
  uint32_t word;
  std::memcpy(&word, in, sizeof word);
  return {bits_to_float(word << 16), bits_to_float(word & 0xffff0000u)};
}
template <Ties ties>
inline void store_two(bfloat16* out, Two value) {
  const uint32_t word =
      (rounded_bits<ties>(value.first) >> 16) | (rounded_bits<ties>(value.second) & 0xffff0000u);
  std::memcpy(out, &word, sizeof word);
}

// Whether loops handle elements of A two at a time.
template <class A>
constexpr bool in_twos = std::is_same_v<A, bfloat16>;

// Bytes ahead at which a loop prefetches what it reads and writes, a few cache lines at a time.
// Hardware prefetchers stop at the end of a page, are late at the start of the next one, and ignore
// stores. A prefetch beyond the end of an array does nothing.
constexpr int64_t prefetch_distance = 2048;

// Bytes prefetched at a time, and their elements.
constexpr int64_t prefetch_bytes = 256;
template <class A>
constexpr int64_t prefetch_elements = prefetch_bytes / static_cast<int64_t>(sizeof(A));

// Inlined by force: GCC takes a function that does nothing else for one without effect.
template <int write>
[[gnu::always_inline]] inline void prefetch_lines(const void* at, int64_t bytes) {
  for (int64_t line = 0; line < bytes; line += 64)
    __builtin_prefetch(static_cast<const char*>(at) + prefetch_distance + line, write);
}

// f(begin, count) over [0, n), count a constant but for the last.
template <class A, class Function>
[[gnu::always_inline]] inline void for_steps(int64_t n, const Function& f) {
  constexpr int64_t step = prefetch_elements<A>;
  const int64_t whole = n / step * step;
  for (int64_t begin = 0; begin < whole; begin += step) f(begin, step);
  if (whole < n) f(whole, n - whole);
}

// y[i] = f(x[i], ...), i = 0 .. n - 1. y may be one of the x. Assigns. With Fetch::none nothing is
// asked for ahead.
enum class Fetch { none, ahead };
template <Ties ties, Fetch fetch = Fetch::ahead, class A, class Function, class... X>
[[gnu::always_inline]] inline void map(A* y, int64_t n, const Function& f, const X*... x) {
  for_steps<A>(
      n, [&](int64_t begin, int64_t count) __attribute__((always_inline)) {
        if (fetch == Fetch::ahead && count == prefetch_elements<A>) {
          prefetch_lines<1>(y + begin, prefetch_bytes);
          (prefetch_lines<0>(x + begin, prefetch_bytes), ...);
        }
        if constexpr (in_twos<A>) {
#pragma omp simd
          for (int64_t i = begin / 2; i < (begin + count) / 2; ++i) {
            const auto both = [&](auto... v) __attribute__((always_inline)) {
              return Two{f(v.first...), f(v.second...)};
            };
            store_two<ties>(y + 2 * i, both(load_two(x + 2 * i)...));
          }
        } else {
#pragma omp simd
          for (int64_t i = begin; i < begin + count; ++i) store(y[i], f(load(x[i])...));
        }
      });
  if (in_twos<A> && n % 2 != 0) store(y[n - 1], f(load(x[n - 1])...));
}

// y[i] and z[i] are what f(x[i], ...) has as first and second, i = 0 .. n - 1. y and z may be among
// the x. Assigns.
template <Ties ties, class A, class Function, class... X>
[[gnu::always_inline]] inline void map_to_two(A* y, A* z, int64_t n, const Function& f,
                                              const X*... x) {
  const auto one = [&](int64_t i) __attribute__((always_inline)) {
    const Two out = f(load(x[i])...);
    store(y[i], out.first);
    store(z[i], out.second);
  };
  for_steps<A>(
      n, [&](int64_t begin, int64_t count) __attribute__((always_inline)) {
        if (count == prefetch_elements<A>) {
          prefetch_lines<1>(y + begin, prefetch_bytes);
          prefetch_lines<1>(z + begin, prefetch_bytes);
          (prefetch_lines<0>(x + begin, prefetch_bytes), ...);
        }
        if constexpr (in_twos<A>) {
#pragma omp simd
          for (int64_t i = begin / 2; i < (begin + count) / 2; ++i) {
            const auto both = [&](auto... v) __attribute__((always_inline)) {
              const Two a = f(v.first...), b = f(v.second...);
              store_two<ties>(y + 2 * i, {a.first, b.first});
              store_two<ties>(z + 2 * i, {a.second, b.second});
            };
            both(load_two(x + 2 * i)...);
          }
        } else {
#pragma omp simd
          for (int64_t i = begin; i < begin + count; ++i) one(i);
        }
      });
  if (in_twos<A> && n % 2 != 0) one(n - 1);
}

}  // namespace gptbench::simd
