// Arguments of normalisations. Letters, types and terms: device/kernels.h.
#pragma once

#include <cstdint>

#include "device/arguments_types.h"

namespace gptbench {

// What a norm's input is formed from in the same pass where `sum` is not null, as ResidualForward
// forms it: sum[R,C] (A) = residual + dropout(branch) is assigned, and may be either of them; the
// norm is that of the sum as it is stored, and x is not looked at. Moves 4 R C elements of A
// together with the norm, where the two apart move 5.
struct ResidualSum {
  void* sum = nullptr;
  const void* residual = nullptr;
  const void* branch = nullptr;
  Dropout dropout = {};
  GlobalRows rows = {};
};

// y = (x - mean) rstd gamma + beta over each row of C (Ba, Kiros and Hinton, arXiv:1607.06450);
// rstd = 1 / sqrt(variance + epsilon), biased variance.  Assigns y (A), mean[R], rstd[R] (S).
// Moves 2 R C elements of A, of y one byte each where it is an fp8 copy alone (not transposed).
struct LayerNormForward {
  void* y;
  void* mean;
  void* rstd;
  const void* x;
  const void* gamma;  // [C] A
  const void* beta;   // [C] A, or null: 0
  int64_t R, C;
  double epsilon;
  Fp8Copy fp8 = {};
  ResidualSum residual = {};
};

// With n = (x - mean) rstd and g = dy gamma:
//   dx += rstd (g - mean_C(g) - n mean_C(g n)),  dgamma += sum_R dy n,  dbeta += sum_R dy.
// Accumulates dx (A), dgamma[C], dbeta[C] (S); dbeta may be null.
struct LayerNormBackward {
  void* dx;
  void* dgamma;
  void* dbeta;
  const void* dy;
  const void* x;
  const void* gamma;
  const void* mean;
  const void* rstd;
  int64_t R, C;
  Workspace workspace = {};  // for partial sums; may be empty
};

// y = x rstd gamma over each row of C (Zhang and Sennrich, arXiv:1910.07467);
// rstd = 1 / sqrt(mean_C(x^2) + epsilon).  Assigns y (A), rstd[R] (S). Bytes as of
// LayerNormForward.
struct RmsNormForward {
  void* y;
  void* rstd;
  const void* x;
  const void* gamma;  // [C] A
  int64_t R, C;
  double epsilon;
  Fp8Copy fp8 = {};
  ResidualSum residual = {};
};

// With n = x rstd and g = dy gamma:  dx += rstd (g - n mean_C(g n)),  dgamma += sum_R dy n.
// Accumulates dx (A), dgamma[C] (S).
struct RmsNormBackward {
  void* dx;
  void* dgamma;
  const void* dy;
  const void* x;
  const void* gamma;
  const void* rstd;
  int64_t R, C;
  Workspace workspace = {};  // for partial sums; may be empty
};

}  // namespace gptbench
