// Which calls the tensor-core kernels take; the others go to the SIMT ones. What either needs.
#include <initializer_list>

#include "cuda/attention/attention.cuh"
#include "cuda/attention/limits.h"
#include "cuda/attention/simt_tile.cuh"

namespace gptbench::cuda {
namespace {

bool head_size_applies(int64_t D) {
  return D % 8 == 0 && D <= 128;
}

bool shape_applies(const AttentionShape& s) {
  if (!head_size_applies(s.D)) return false;
  for (const int64_t stride : {s.q.row, s.kv.row, s.out.row, s.q.step, s.kv.step, s.out.step})
    if (stride % 8 != 0) return false;
  return s.scale > 0.0;  // a maximum of products is one of scores
}

bool aligned(std::initializer_list<const void*> arrays) {
  for (const void* array : arrays)
    if (reinterpret_cast<uintptr_t>(array) % 16 != 0) return false;
  return true;
}

template <class A>
size_t simt_shared_bytes(int64_t D) {
  size_t bytes = 0;
  with_head_size<A>(D,
                    [&](auto size) { bytes = SimtTile<decltype(size)::value>::shared_bytes(4); });
  return bytes;
}

}  // namespace

bool tensor_attention_applies(const AttentionForward& a) {
  return shape_applies(a.shape) && aligned({a.out, a.q, a.k, a.v});
}

bool tensor_attention_applies(const AttentionBackward& a) {
  for (const int64_t stride :
       {a.dq_strides.row, a.dkv_strides.row, a.dq_strides.step, a.dkv_strides.step})
    if (stride % 8 != 0) return false;
  return shape_applies(a.shape) && aligned({a.dq, a.dk, a.dv, a.dout}) && aligned({a.q, a.k, a.v});
}

}  // namespace gptbench::cuda

namespace gptbench {

int64_t attention_shared_bytes(DType type, int64_t D) {
  const bool narrow = size_of(type) == 2;
  if (narrow && cuda::head_size_applies(D)) return cuda::tensor_shared_bytes;
  return static_cast<int64_t>(narrow ? cuda::simt_shared_bytes<bfloat16>(D)
                                     : cuda::simt_shared_bytes<float>(D));
}

}  // namespace gptbench
