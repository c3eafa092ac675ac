// What forward and backward of the host's tiled attention share: how heads are dealt to threads,
// and where a thread's scratch memory lies.
#pragma once

#include "base/error.h"
#include "device/gemm_onednn.h"
#include "device/host_dropout.h"
#include "device/host_parallel.h"
#include "device/kernels_host.h"
#include "device/kernels_ref.h"
#include "device/simd_math.h"
#include "plan/workspace.h"

namespace gptbench::host {

// Whether queries and keys are the same positions of whole sequences, all visible but for
// causality.
inline bool is_plain(const AttentionShape& s) {
  return s.T_q == s.T_k && s.T_q == s.T && s.keys == KeyBlock::all && !s.alibi &&
         s.lengths == nullptr && position_of(s.q_positions, s.T - 1) == s.T - 1;
}

// Hands out arrays from one thread's part of the workspace.
class Scratch {
 public:
  Scratch(const Workspace& workspace, int64_t thread, int64_t bytes_a_thread)
      : next_(static_cast<char*>(workspace.data) + thread * bytes_a_thread),
        end_(next_ + bytes_a_thread) {}

  template <class T>
  T* take(int64_t elements) {
    T* const array = reinterpret_cast<T*>(next_);
    next_ += round_up(elements * static_cast<int64_t>(sizeof(T)), 64);
    GPTBENCH_CHECK(next_ <= end_, "attention workspace");
    return array;
  }
  Workspace take_gemm_workspace() {
    return {take<char>(attention_gemm_bytes), attention_gemm_bytes};
  }

 private:
  char* next_;
  char* end_;
};

// f(item, scratch) for items 0 .. items - 1, dealt to the threads in turn. Each runs on one thread,
// its GEMMs too.
template <class Function>
void parallel_heads(const char* name, int64_t items, int64_t T, int64_t D,
                    const Workspace& workspace, const Function& f) {
  const int64_t bytes = attention_workspace_bytes_a_thread(T, D, sizeof(float));
  const int64_t threads = std::min(num_threads(), items);
  GPTBENCH_CHECK(threads * bytes <= workspace.bytes,
                 "attention of " + std::to_string(threads) + " threads needs " +
                     std::to_string(threads * bytes) + " bytes of workspace, there are " +
                     std::to_string(workspace.bytes));
  parallel(name, threads, [=](int64_t thread) {
    const SingleThreadedGemms single;
    for (int64_t item = thread; item < items; item += threads)
      f(item, Scratch(workspace, thread, bytes));
  });
}

// out[T,D] = rows of one head, `row` elements apart, packed: the GEMMs of tiles run faster on them.
template <class A>
void pack_rows(A* out, const void* first, int64_t row, int64_t rows, int64_t D) {
  const A* const in = static_cast<const A*>(first);
  for (int64_t t = 0; t < rows; ++t) std::copy(in + t * row, in + t * row + D, out + t * D);
}

// c[m,n] = a b, or += where `accumulate`; packed operands, f32 result.
template <class A>
void tile_gemm(float* c, int64_t m, int64_t n, int64_t k, const A* a, bool a_transposed, const A* b,
               bool b_transposed, bool accumulate, const Workspace& workspace) {
  run_gemm({simd::type_of<A>(),
            DType::f32,
            m,
            n,
            k,
            {a, a_transposed ? m : k, a_transposed},
            {b, b_transposed ? k : n, b_transposed},
            c,
            n,
            nullptr,
            accumulate},
           workspace);
}

}  // namespace gptbench::host
