// Elements of arrays in registers: all arithmetic is in float, memory holds A. Accesses are of 16
// bytes wherever N elements fill them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/dtype.h"
#include "cuda/kernels/runtime.h"

#if !defined(GPTBENCH_EMULATION)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace gptbench::cuda {

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(bfloat16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}
__device__ inline float to_float(float16 x) {
#if defined(GPTBENCH_EMULATION)
  return static_cast<float>(x);
#else
  return __half2float(__ushort_as_half(x.bits));
#endif
}

// Rounded to nearest even.
template <class T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline bfloat16 from_float<bfloat16>(float x) {
#if defined(GPTBENCH_EMULATION)
  return bfloat16(x);
#else
  bfloat16 out;
  out.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
  return out;
#endif
}

template <>
__device__ inline float16 from_float<float16>(float x) {
#if defined(GPTBENCH_EMULATION)
  return float16(x);
#else
  float16 out;
  out.bits = __half_as_ushort(__float2half_rn(x));
  return out;
#endif
}

// x[i] rounded to A.
template <class A, int N>
__device__ inline void round_to(float (&x)[N]) {
  GPTBENCH_UNROLL
  for (int i = 0; i < N; ++i) x[i] = to_float(from_float<A>(x[i]));
}

// Two values of a type of 2 bytes side by side in 32 bits, `low` at the lower address.
template <class A>
__device__ inline uint32_t pack(float low, float high);
template <>
__device__ inline uint32_t pack<bfloat16>(float low, float high) {
#if defined(GPTBENCH_EMULATION)
  return static_cast<uint32_t>(bfloat16(low).bits) | static_cast<uint32_t>(bfloat16(high).bits)
                                                         << 16;
#else
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
#endif
}
template <>
__device__ inline uint32_t pack<float16>(float low, float high) {
#if defined(GPTBENCH_EMULATION)
  return static_cast<uint32_t>(float16(low).bits) | static_cast<uint32_t>(float16(high).bits) << 16;
#else
  const __half2 pair = __floats2half2_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
#endif
}

// And back.
template <class A>
__device__ inline float2 unpack(uint32_t bits);
template <>
__device__ inline float2 unpack<bfloat16>(uint32_t bits) {
  return {__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u)};
}
template <>
__device__ inline float2 unpack<float16>(uint32_t bits) {
#if defined(GPTBENCH_EMULATION)
  float16 low, high;
  low.bits = static_cast<uint16_t>(bits & 0xffffu);
  high.bits = static_cast<uint16_t>(bits >> 16);
  return {static_cast<float>(low), static_cast<float>(high)};
#else
  __half2 pair;
  memcpy(&pair, &bits, sizeof bits);
  return __half22float2(pair);
#endif
}

// out[i] = p[i], i < N. p is aligned to 16 bytes, or to the size of N elements where that is less.
template <int N>
__device__ inline void load(float (&out)[N], const float* p) {
  if constexpr (N % 4 == 0) {
    GPTBENCH_UNROLL
    for (int i = 0; i < N; i += 4) {
      const float4 v = *GPTBENCH_VECTOR(const float4, p + i);
      out[i] = v.x;
      out[i + 1] = v.y;
      out[i + 2] = v.z;
      out[i + 3] = v.w;
    }
  } else {
    static_assert(N == 1, "four elements of float, or one");
    out[0] = p[0];
  }
}
template <int N, class A>
__device__ inline std::enable_if_t<sizeof(A) == 2> load(float (&out)[N], const A* p) {
  if constexpr (N % 8 == 0) {
    GPTBENCH_UNROLL
    for (int i = 0; i < N; i += 8) {
      const uint4 v = *GPTBENCH_VECTOR(const uint4, p + i);
      const uint32_t words[4] = {v.x, v.y, v.z, v.w};
      GPTBENCH_UNROLL
      for (int w = 0; w < 4; ++w) {
        const float2 pair = unpack<A>(words[w]);
        out[i + 2 * w] = pair.x;
        out[i + 2 * w + 1] = pair.y;
      }
    }
  } else {
    static_assert(N == 1, "eight elements of 2 bytes, or one");
    out[0] = to_float(p[0]);
  }
}

// p[i] = x[i], i < N, rounded to nearest even; alignment as for load.
template <int N>
__device__ inline void store(float* p, const float (&x)[N]) {
  if constexpr (N % 4 == 0) {
    GPTBENCH_UNROLL
    for (int i = 0; i < N; i += 4)
      *GPTBENCH_VECTOR(float4, p + i) = float4{x[i], x[i + 1], x[i + 2], x[i + 3]};
  } else {
    p[0] = x[0];
  }
}
template <int N, class A>
__device__ inline std::enable_if_t<sizeof(A) == 2> store(A* p, const float (&x)[N]) {
  if constexpr (N % 8 == 0) {
    GPTBENCH_UNROLL
    for (int i = 0; i < N; i += 8)
      *GPTBENCH_VECTOR(uint4, p + i) =
          uint4{pack<A>(x[i], x[i + 1]), pack<A>(x[i + 2], x[i + 3]), pack<A>(x[i + 4], x[i + 5]),
                pack<A>(x[i + 6], x[i + 7])};
  } else {
    p[0] = from_float<A>(x[0]);
  }
}

constexpr float log2_e = 1.44269504088896340736f, ln_2 = 0.69314718055994530942f;

// exp and division, good to a few ulp for A = float; to 2 ulp + 2^-21 |x|, far below the rounding
// to A, for narrower types.
template <class A>
__device__ inline float exp_of(float x) {
  return sizeof(A) == sizeof(float) ? expf(x) : __expf(x);
}
template <class A>
__device__ inline float divide(float x, float y) {
  return sizeof(A) == sizeof(float) ? x / y : __fdividef(x, y);
}

}  // namespace gptbench::cuda
