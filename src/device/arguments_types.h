// What the arguments of several kernels share. Letters, types and terms: device/kernels.h.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/dtype.h"
#include "base/fp8.h"
#include "base/host_device.h"

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
};

// Dropout: element e of a tensor is kept, and scaled by 1 / (1 - rate), when
// uniform_of(random_word(seed, RandomStream::dropout, instance, e)) >= rate (base/random.h). e is
// the element's index in the global tensor, so that masks do not depend on the layout. The engine
// makes the seed from the run's and the step, and instance = (layer + 1) * 2^3 + site.
struct Dropout {
  double rate = 0.0;  // 0: off
  uint64_t seed = 0;
  uint32_t instance = 0;
  // Where not null: the seed lies there, in the memory of the device, and is read when the kernel
  // runs; so that steps are alike to the device.
  const uint64_t* seed_in_memory = nullptr;
};
GPTBENCH_HOST_DEVICE constexpr uint64_t seed_of(const Dropout& d) {
  return d.seed_in_memory != nullptr ? *d.seed_in_memory : d.seed;
}

// Positions of consecutive rows in their sequence: row t stands at begin[0] + t where t < split, at
// begin[1] + t - split elsewhere; ascending. Context parallelism gives a rank two ranges of each
// sequence, one from either half, so that the causal mask leaves all ranks equal work; without it
// the default says it all.
struct Positions {
  int64_t begin[2] = {0, 0};
  int64_t split = INT64_MAX;
};
GPTBENCH_HOST_DEVICE constexpr int64_t position_of(const Positions& p, int64_t t) {
  return t < p.split ? p.begin[0] + t : p.begin[1] + t - p.split;
}

// Where rows of activations lie in the global batch: this rank holds T_local of the T positions of
// a sequence; its row r is row first_row + r of those of the micro-batch, whose first sequence is
// number first_sequence of the global batch.
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

// What makes the factors of a linear layer fp8 (base/fp8.h): where `left` and `right` are not null,
// both factors of the product are arrays of bytes q that stand for left[0] q and right[0] q, powers
// of two: x and W in e4m3, dy in e5m2. Sums run in f32 or wider; what is not a factor keeps its
// type.
//   forward          left x,  right W
//   backward_input   left dy, right W
//   backward_weight  left dy, right x; dbias is null (BiasBackward)
// `transposed`: factors that a product of rows by rows wants the other way round are handed over
// so: W as [K,N], where N = padded_rows(N), dy as [N,R'] and x as [K,R'], R' = padded_rows(R),
// columns R and on 0. GPUs of compute capability 9.0 multiply fp8 in no other way.
struct Fp8Scales {
  const float* left = nullptr;
  const float* right = nullptr;
  bool transposed = false;
};

// An fp8 copy of the array [R, C] that a kernel assigns, made in the same pass of its values as
// they are rounded to A: with the bits that Fp8Quantize makes of the array. Where a copy is made
// the array itself may be null, and is then not stored. `type`: e4m3 of x, e5m2 of dy, whose
// sums over rows are the gradient of a bias.
struct Fp8Copy {
  void* y = nullptr;
  void* y_transposed = nullptr;  // [C, padded_rows(R)]; of kernels that say so, on GPUs alone
  float* amax = nullptr;
  const float* scale = nullptr;
  DType type = DType::fp8_e4m3;
  // sums[C] += sums over rows of the values as rounded (S); of kernels that turn. Null: none.
  void* sums = nullptr;
  Workspace workspace = {};  // of sums on a GPU: 4 C bytes a 64 rows, or less for more passes

  GPTBENCH_HOST_DEVICE constexpr bool wanted() const {
    return y != nullptr || y_transposed != nullptr;
  }
};

}  // namespace gptbench
