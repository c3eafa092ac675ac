// What the sources of cuda/ use of CUDA's language, for a host compiler: cuda/kernels/runtime.h
// includes this in place of cuda_runtime.h where GPTBENCH_EMULATION is defined. Collectives take
// the full warp only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "emulation/fibre_block.h"
#include "emulation/launch.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define GPTBENCH_UNROLL
#define GPTBENCH_VECTOR(type, p) (::gptbench::emulation::vector_at<type>(p))
#define GPTBENCH_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::gptbench::emulation::shared_memory())

#define threadIdx (::gptbench::emulation::thread_index)
#define blockIdx (::gptbench::emulation::block_index)
#define blockDim (::gptbench::emulation::block_size)
#define gridDim (::gptbench::emulation::grid_size)

using cudaStream_t = CUstream_st*;

namespace gptbench::cuda {
inline cudaStream_t stream_of(Queue& queue) {
  return emulation::stream_of(queue);
}
}  // namespace gptbench::cuda

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};

// ---- barriers and warp collectives -------------------------------------------------------------

#define GPTBENCH_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(GPTBENCH_HERE) {
  ::gptbench::emulation::block_barrier(false, file, line);
}
inline int __syncthreads_count(int predicate, GPTBENCH_HERE) {
  return ::gptbench::emulation::block_barrier(predicate != 0, file, line);
}
inline int __syncthreads_or(int predicate, GPTBENCH_HERE) {
  return ::gptbench::emulation::block_barrier(predicate != 0, file, line) > 0;
}

namespace gptbench::emulation {

inline void check_mask(unsigned mask) {
  if (mask != 0xffffffffu) fail("a collective of part of a warp, which is not emulated");
}
template <class V, class T>
V* vector_at(T* p) {
  if (reinterpret_cast<uintptr_t>(p) % sizeof(V) != 0)
    fail("an access of %zu bytes at an address that is no multiple of them", sizeof(V));
  return reinterpret_cast<V*>(p);
}
inline int lane_index() {
  return static_cast<int>(thread_index.x % warp_size);
}

template <class T>
T from_lane(const Lane* lanes, int lane) {
  T value;
  std::memcpy(&value, lanes[lane].bytes, sizeof value);
  return value;
}
template <class T>
Lane lane_of(const T& value) {
  static_assert(sizeof(T) <= sizeof(Lane::bytes), "more than a lane can hand over");
  Lane lane{};
  std::memcpy(lane.bytes, &value, sizeof value);
  return lane;
}
// The value of lane `source` of the group of `width` lanes of this one; its own where that lies
// outside the group.
template <class T>
T shuffle(T value, int source, int width, const char* file, int line) {
  const Lane* lanes = warp_exchange(lane_of(value), file, line);
  const int first = lane_index() / width * width;
  return from_lane<T>(lanes, source < 0 || source >= width ? lane_index() : first + source);
}

}  // namespace gptbench::emulation

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, GPTBENCH_HERE) {
  ::gptbench::emulation::check_mask(mask);
  return ::gptbench::emulation::shuffle(value, source % width, width, file, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, GPTBENCH_HERE) {
  ::gptbench::emulation::check_mask(mask);
  const int lane = ::gptbench::emulation::lane_index() % width;
  return ::gptbench::emulation::shuffle(value, lane ^ bits, width, file, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, GPTBENCH_HERE) {
  ::gptbench::emulation::check_mask(mask);
  const int lane = ::gptbench::emulation::lane_index() % width;
  return ::gptbench::emulation::shuffle(value, lane + static_cast<int>(by), width, file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, GPTBENCH_HERE) {
  ::gptbench::emulation::check_mask(mask);
  const int lane = ::gptbench::emulation::lane_index() % width;
  return ::gptbench::emulation::shuffle(value, lane - static_cast<int>(by), width, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, GPTBENCH_HERE) {
  using namespace ::gptbench::emulation;
  check_mask(mask);
  const Lane* lanes = warp_exchange(lane_of(predicate), file, line);
  unsigned bits = 0;
  for (int lane = 0; lane < warp_size; ++lane)
    if (from_lane<int>(lanes, lane) != 0) bits |= 1u << lane;
  return bits;
}
inline int __any_sync(unsigned mask, int predicate, GPTBENCH_HERE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, GPTBENCH_HERE) {
  return __ballot_sync(mask, predicate, file, line) == 0xffffffffu;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, GPTBENCH_HERE) {
  ::gptbench::emulation::check_mask(mask);
  ::gptbench::emulation::warp_exchange({}, file, line);
}

// ---- atomics: threads take turns, so that plain arithmetic is atomic
// -----------------------------

template <class T>
T atomicAdd(T* to, T value) {
  const T before = *to;
  *to = before + value;
  return before;
}
template <class T>
T atomicMax(T* to, T value) {
  const T before = *to;
  *to = std::max(before, value);
  return before;
}
inline void __threadfence() {}

// ---- arithmetic
// ----------------------------------------------------------------------------------

inline float __expf(float x) {
  return std::exp(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float rsqrtf(float x) {
  return 1.0f / std::sqrt(x);
}
inline void sincospi(double x, double* sine, double* cosine) {
  constexpr double pi = 3.14159265358979323846;
  *sine = std::sin(pi * x);
  *cosine = std::cos(pi * x);
}
inline void sincospif(float x, float* sine, float* cosine) {
  double s, c;
  sincospi(static_cast<double>(x), &s, &c);
  *sine = static_cast<float>(s);
  *cosine = static_cast<float>(c);
}
template <class T>
T __ldg(const T* p) {
  return *p;
}
inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// ---- launches
// ------------------------------------------------------------------------------------

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace gptbench::cuda {

// Few multiprocessors, so that loops over a grid go round more than once.
inline int multiprocessors() {
  return 3;
}

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, int threads,
            size_t shared_bytes, cudaStream_t stream, Arguments... arguments) {
  emulation::load_kernel(name, reinterpret_cast<const void*>(kernel));
  emulation::submit(stream, name, [=] {
    emulation::run_grid(name, {grid.x, grid.y, grid.z}, static_cast<unsigned>(threads),
                        shared_bytes, [&] { kernel(arguments...); });
  });
}

}  // namespace gptbench::cuda
