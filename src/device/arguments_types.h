// Types that arguments of several kernels share. Letters, types and terms: device/kernels.h.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/dtype.h"
#include "base/fp8.h"
#include "base/host_device.h"
#include "plan/context.h"

namespace gptbench {

enum class ComputeType { fp32, bf16, fp16, fp64 };
constexpr DType activation_type(ComputeType c) {
  return c == ComputeType::bf16   ? DType::bf16
         : c == ComputeType::fp16 ? DType::f16
         : c == ComputeType::fp64 ? DType::f64
                                  : DType::f32;
}

// Scratch memory of the queue, from the arena; its sizes are those of plan/workspace.h.
struct Workspace {
  void* data = nullptr;
  int64_t bytes = 0;
  // The part behind the first `taken` bytes.
  Workspace rest(int64_t taken) const { return {static_cast<char*>(data) + taken, bytes - taken}; }
};

// Dropout: element e of a tensor is kept, and scaled by 1 / (1 - rate), when
// uniform_of(random_word(seed, RandomStream::dropout, instance, e)) >= rate (base/random.h). e is
// the element's index in the global tensor, so that masks do not depend on the layout. The engine
// makes the seed from the run's and the step, and instance = (layer + 1) * 2^3 + site.
struct Dropout {
  double rate = 0.0;  // 0: off
  uint64_t seed = 0;
  uint32_t instance = 0;
  // If not null: address of the seed in the device's memory, read when the kernel runs, so that one
  // recorded step serves all steps.
  const uint64_t* seed_in_memory = nullptr;
};
GPTBENCH_HOST_DEVICE constexpr uint64_t seed_of(const Dropout& d) {
  return d.seed_in_memory != nullptr ? *d.seed_in_memory : d.seed;
}

// Positions of consecutive rows in their sequence, ascending. Without context parallelism the
// default: row t stands at position t.
using Positions = HeldPositions;
GPTBENCH_HOST_DEVICE constexpr int64_t position_of(const Positions& p, int64_t t) {
  return t < p.split ? p.begin[0] + t : p.begin[1] + t - p.split;
}

// Where rows of activations lie in the global batch. This rank holds T_local of the T positions of
// each sequence. Row r of a kernel is row first_row + r of the rank's micro-batch, which begins
// with sequence first_sequence of the global batch.
struct GlobalRows {
  int64_t first_sequence = 0, first_row = 0;
  int64_t T_local = 1, T = 1;
  Positions positions;
};
// Row of row r in the global batch [sequence, position].
GPTBENCH_HOST_DEVICE constexpr int64_t global_row(const GlobalRows& g, int64_t r) {
  const int64_t row = g.first_row + r;
  return (g.first_sequence + row / g.T_local) * g.T + position_of(g.positions, row % g.T_local);
}

// Scales of a GEMM with fp8 factors (base/fp8.h). Where `left` and `right` are not null, the
// factors are fp8 arrays q of the values left[0] q and right[0] q; scales are powers of two. x and
// W are e4m3, dy is e5m2. Sums run in f32 or wider; other operands keep their type.
//   forward          left x,  right W
//   backward_input   left dy, right W
//   backward_weight  left dy, right x; dbias is null (BiasBackward)
// `transposed`: factors are stored so that both are contiguous along the inner size: W as [K,N] in
// backward_input, where N = padded_rows(N); dy as [N,R'] and x as [K,R'] in backward_weight, R' =
// padded_rows(R), columns from R on 0. GPUs of compute capability 9.0 have no other fp8 GEMM.
struct Fp8Scales {
  const float* left = nullptr;
  const float* right = nullptr;
  bool transposed = false;
};

// An fp8 copy of the array [R, C] that a kernel assigns, made in the same pass from values rounded
// to A: the same bits as Fp8Quantize of the array. Where a copy is made, the array itself may be
// null and is then not stored. `type`: e4m3 for x; e5m2 for dy, whose sums over rows are the
// gradient of a bias.
struct Fp8Copy {
  void* y = nullptr;
  void* y_transposed = nullptr;  // [C, padded_rows(R)]; if the kernel supports it; used on GPUs
  float* amax = nullptr;
  const float* scale = nullptr;
  DType type = DType::fp8_e4m3;
  // sums[C] += sums over rows of the rounded values (S); if the kernel supports y_transposed.
  void* sums = nullptr;
  Workspace workspace = {};  // for sums on a GPU: 4 C bytes per 64 rows; less takes more passes

  GPTBENCH_HOST_DEVICE constexpr bool wanted() const {
    return y != nullptr || y_transposed != nullptr;
  }
};

}  // namespace gptbench
