// Arguments of the parameter update (sums, norms, clipping, AdamW, fp8 scales), of type conversions
// and of drawing weights. Letters, types and terms: device/kernels.h.
#pragma once

#include <cstdint>

#include "device/arguments_types.h"

namespace gptbench {

// y += x, n elements. Accumulates (S).
struct Accumulate {
  void* y;
  const void* x;
  int64_t n;
};

// y = a + scale b, n elements: the triad of STREAM (McCalpin, 1995). Assigns (S). Calibrations time
// it; a step has none.
struct Triad {
  void* y;
  const void* a;
  const void* b;
  int64_t n;
  double scale;
};

// out[0] = x[0] + ... + x[n-1] in this order. Assigns (double).
struct SumScalars {
  double* out;
  const double* x;
  int64_t n;
};

// sum[0] += sum of g[i]^2, i = 0 .. n-1 (double). Accumulates; partial sums over fixed blocks of
// 4096 elements, so that the order does not depend on the number of threads.
struct SquaredNorm {
  double* sum;
  const void* g;
  int64_t n;
  DType type;                // of g: S or A
  Workspace workspace = {};  // for partial sums; may be empty
};

// Dynamic loss scaling (Micikevicius et al., arXiv:1710.03740) after the gradient is reduced.
// norm2 is the squared norm of the gradient multiplied by the scale s = state[0]. used[0] = s, and
//   norm2 finite:  norm2 /= s^2, skip[0] = 0; after `window` such steps in a row (0: never)
//                  s *= growth, and counting restarts;
//   else:          norm2 unchanged, skip[0] = 1, counting restarts; s *= backoff in the
//                  `hysteresis`-th such step since s last grew and in each one after it.
// next[0] = s of the next step. state: s, finite steps in a row, non-finite steps still tolerated.
// All double.
struct LossScale {
  double* state;
  double* norm2;
  double* used;
  double* next;
  double* skip;
  double growth, backoff;
  int64_t window, hysteresis;
};

// factor[0] = 1 where clip = 0 or sqrt(norm2) <= clip, else clip / sqrt(norm2); divided by
// loss_scale[0] where that is not null. NaN where norm2 is not finite. Assigns (double).
struct ClipFactor {
  double* factor;
  const double* norm2;
  double clip;
  const double* loss_scale = nullptr;
};

// AdamW (Loshchilov and Hutter, arXiv:1711.05101) over n consecutive elements; g' = factor g:
//   m = b1 m + (1 - b1) g',  v = b2 v + (1 - b2) g'^2,
//   p = p - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay p),
// p the master copy; `working` (A), where not null, is assigned p rounded. Types are S or A,
// moments not f16; arithmetic is done in S or wider and rounded once, to nearest even. Where `skip`
// is not null and skip[0] is not 0, or factor is NaN, p, m and v are unchanged, whatever g holds;
// `working` is assigned.
struct AdamW {
  void* p;
  void* m;
  void* v;
  const void* g;
  void* working;  // A; null where GEMMs read p
  const double* factor;
  int64_t n;
  int64_t t;  // number of this update, from 1
  double lr, beta1, beta2, epsilon, weight_decay;
  DType p_type, moment_type, g_type;
  // On a GPU, if not null: lr / (1 - b1^t), 1 / sqrt(1 - b2^t) and lr weight_decay in the device's
  // memory, used in place of t and lr, so that one recorded step serves all steps. A weight_decay
  // of 0 above remains 0.
  const float* corrections = nullptr;
  const double* skip = nullptr;
};

// y[R,C] = x[R,C], or += where `accumulate`, rounded to nearest even; rows are y_row and x_row
// elements apart. Types are S or A.
struct Convert {
  void* y;
  const void* x;
  int64_t R, C;
  int64_t y_row, x_row;
  DType y_type, x_type;
  bool accumulate;
};

// y[i] = std z(first + i), rounded to nearest even, or 1 where `ones`. z is standard normal, from
// fill_normal (base/random.h) with the stream of weights and instance `tensor`: the same bits on
// every device. Assigns n elements of type S or A.
struct DrawWeights {
  void* y;
  int64_t n;
  uint64_t seed;
  uint32_t tensor;
  uint64_t first;
  float std;
  bool ones;
  DType type;
};

// y[r,c] = fp8(scale x[r,c]), rounded to nearest even, saturated;  y_transposed[c,r] the same, rows
// padded_rows(R) elements apart, the padding 0;  amax[0] = max(amax[0], max |x|), NaN ignored.
// Assigns y and y_transposed (fp8, `type`), either of which may be null; x is A.
struct Fp8Quantize {
  void* y;
  void* y_transposed;
  float* amax;
  const void* x;
  const float* scale;
  int64_t R, C;
  DType type;
  void* sums = nullptr;  // sums over the rows of x, and their scratch memory: as in Fp8Copy
  Workspace workspace = {};
};

inline Fp8Copy copy_of(const Fp8Quantize& a) {
  Fp8Copy copy;
  copy.y = a.y;
  copy.y_transposed = a.y_transposed;
  copy.amax = a.amax;
  copy.scale = a.scale;
  copy.type = a.type;
  copy.sums = a.sums;
  copy.workspace = a.workspace;
  return copy;
}

// y[c,r] = x[r,c], bytes; rows of y padded_rows(R) elements apart, the padding 0.  Assigns y.
struct Fp8Transpose {
  void* y;
  const void* x;
  int64_t R, C;
};

// Delayed scaling, as in NVIDIA's Transformer Engine, of `count` tensors: the first `e4m3` of them
// are e4m3, the others e5m2. For each tensor i
//   history[position[i]][i] = amax[i],  scale[i] = fp8_scale(max over the `length` rows of
//   history[..][i]),  inverse[fp8_inverse_stride i] = 1 / scale[i],  amax[i] = 0,  position[i] +=
//   1, modulo length.
// Rows that no step has written yet are 0. An infinite amax leaves the scale unchanged.
struct Fp8UpdateScales {
  float* scale;
  float* inverse;
  float* amax;
  float* history;     // [length, count]
  int32_t* position;  // per tensor, so that one recorded step serves all steps
  int64_t count, e4m3, length;
  int margin;
};

}  // namespace gptbench
