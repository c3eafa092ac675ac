// Which calls the tensor-core kernels take; the others go to the SIMT ones.
#include <initializer_list>

#include "cuda/attention/attention.cuh"

namespace gptbench::cuda {
namespace {

bool shape_applies(const AttentionShape& s) {
  if (s.D % 8 != 0 || s.D > 128) return false;
  for (const int64_t stride : {s.q_row, s.kv_row, s.out_row, s.q_step, s.kv_step, s.out_step})
    if (stride % 8 != 0) return false;
  return s.scale > 0.0;  // a maximum of products is one of scores
}

bool aligned(std::initializer_list<const void*> arrays) {
  for (const void* array : arrays)
    if (reinterpret_cast<uintptr_t>(array) % 16 != 0) return false;
  return true;
}

}  // namespace

bool tensor_attention_applies(const AttentionForward& a) {
  return shape_applies(a.shape) && aligned({a.out, a.q, a.k, a.v});
}

bool tensor_attention_applies(const AttentionBackward& a) {
  for (const int64_t stride : {a.dq_row, a.dkv_row, a.dq_step, a.dkv_step})
    if (stride % 8 != 0) return false;
  return shape_applies(a.shape) && aligned({a.dq, a.dk, a.dv, a.dout, a.q, a.k, a.v});
}

}  // namespace gptbench::cuda
