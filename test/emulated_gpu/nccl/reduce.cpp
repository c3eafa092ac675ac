#include "emulated_gpu/nccl/reduce.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "emulated_gpu/gpu.h"

namespace gptbench::emulation {
namespace {

float widened(bfloat16 value) {
  return static_cast<float>(value);
}
float widened(float16 value) {
  return static_cast<float>(value);
}
float widened(float value) {
  return value;
}
double widened(double value) {
  return value;
}
float widened(uint8_t value) {
  return static_cast<float>(value);
}

// Whole numbers wrap around.
template <class T>
T added(T a, T b) {
  return static_cast<T>(widened(a) + widened(b));
}
template <>
uint8_t added(uint8_t a, uint8_t b) {
  return static_cast<uint8_t>(a + b);
}

template <class T>
void reduce_as(void* out, const void* const* in, int ranks, size_t count, ncclRedOp_t reduction) {
  T* const result = static_cast<T*>(out);
  std::memmove(result, in[0], count * sizeof(T));
  for (int rank = 1; rank < ranks; ++rank) {
    const T* const next = static_cast<const T*>(in[rank]);
    if (reduction == ncclSum)
      for (size_t i = 0; i < count; ++i) result[i] = added(result[i], next[i]);
    else
      for (size_t i = 0; i < count; ++i)
        result[i] = static_cast<T>(std::fmax(widened(result[i]), widened(next[i])));
  }
}

}  // namespace

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclFloat32:
      return 4;
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

void reduce(void* out, const void* const* in, int ranks, size_t count, ncclDataType_t type,
            ncclRedOp_t reduction) {
  switch (type) {
    case ncclUint8:
      return reduce_as<uint8_t>(out, in, ranks, count, reduction);
    case ncclFloat16:
      return reduce_as<float16>(out, in, ranks, count, reduction);
    case ncclBfloat16:
      return reduce_as<bfloat16>(out, in, ranks, count, reduction);
    case ncclFloat32:
      return reduce_as<float>(out, in, ranks, count, reduction);
    case ncclFloat64:
      return reduce_as<double>(out, in, ranks, count, reduction);
    default:
      misuse("NCCL type %d is not emulated", static_cast<int>(type));
  }
}

}  // namespace gptbench::emulation
