// Arguments of normalisations. Letters, types and terms: device/kernels.h.
#pragma once

#include <cstdint>

#include "device/arguments_elementwise.h"
#include "device/arguments_types.h"

namespace gptbench {

// ResidualForward fused into the norm that follows, where `sum` is not null:
//   sum[R,C] = residual + dropout(branch)    assigned (A); may alias residual or branch
// The norm's input is the sum as stored; x is not read. Moves 4 R C elements of A with the norm,
// where the two kernels move 5.
struct ResidualSum {
  void* sum = nullptr;
  const void* residual = nullptr;
  const void* branch = nullptr;
  Dropout dropout = {};
  GlobalRows rows = {};
};

// y = (x - mean) rstd gamma + beta over each row of C (Ba, Kiros and Hinton, arXiv:1607.06450);
// rstd = 1 / sqrt(variance + epsilon), biased variance.  Assigns y (A), mean[R], rstd[R] (S).
// Moves 2 R C elements of A; an fp8 copy in place of y has one byte per element.
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
// Accumulates dx (A), dgamma[C], dbeta[C] (S); dbeta may be null. Where column_sums is not null,
// the sums over rows of dx as stored are added to it, the gradient of a bias.
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
  Workspace workspace = {};     // for partial sums; may be empty
  void* column_sums = nullptr;  // [C] S
};

// y = x rstd gamma over each row of C (Zhang and Sennrich, arXiv:1910.07467);
// rstd = 1 / sqrt(mean_C(x^2) + epsilon).  Assigns y (A), rstd[R] (S). Moves as many bytes as
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

// The sum that a norm forms of its input, as a kernel of its own.
inline ResidualForward residual_of(const LayerNormForward& a) {
  ResidualForward sum{};
  sum.y = a.residual.sum;
  sum.residual = a.residual.residual;
  sum.x = a.residual.branch;
  sum.R = a.R;
  sum.C = a.C;
  sum.dropout = a.residual.dropout;
  sum.rows = a.residual.rows;
  return sum;
}

// RMSNorm as LayerNorm without mean, beta and dbeta, which are null.
inline LayerNormForward as_layernorm(const RmsNormForward& a) {
  LayerNormForward norm{};
  norm.y = a.y;
  norm.rstd = a.rstd;
  norm.x = a.x;
  norm.gamma = a.gamma;
  norm.R = a.R;
  norm.C = a.C;
  norm.epsilon = a.epsilon;
  norm.fp8 = a.fp8;
  norm.residual = a.residual;
  return norm;
}
inline LayerNormBackward as_layernorm(const RmsNormBackward& a) {
  LayerNormBackward norm{};
  norm.dx = a.dx;
  norm.dgamma = a.dgamma;
  norm.dy = a.dy;
  norm.x = a.x;
  norm.gamma = a.gamma;
  norm.rstd = a.rstd;
  norm.R = a.R;
  norm.C = a.C;
  norm.workspace = a.workspace;
  return norm;
}

}  // namespace gptbench
