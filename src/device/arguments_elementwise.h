// Arguments of element-wise kernels. Letters, types and terms: device/kernels.h.
#pragma once

#include <cstdint>

#include "device/arguments_types.h"

namespace gptbench {

// y = gelu(x), tanh form: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel,
// arXiv:1606.08415).  Assigns y (A), n elements. An fp8 copy has rows of C and may be transposed.
struct GeluForward {
  void* y;
  const void* x;
  int64_t n;
  int64_t C = 0;
  Fp8Copy fp8 = {};
};

// dx = dy gelu'(x).  Assigns dx (A); dx may alias dy. fp8 copies as in GeluForward; on a GPU
// fp8.sums may be set without the copies.
struct GeluBackward {
  void* dx;
  const void* dy;
  const void* x;
  int64_t n;
  int64_t C = 0;
  Fp8Copy fp8 = {};
};

// y[R,F] = silu(x[R,:F]) x[R,F:], silu(z) = z / (1 + exp(-z)): SwiGLU (Shazeer, arXiv:2002.05202).
// Assigns y (A); rows of x hold gate and value side by side, 2F elements. An fp8 copy may be
// transposed.
struct SwigluForward {
  void* y;
  const void* x;
  int64_t R, F;
  Fp8Copy fp8 = {};
};

// dx[R,2F] from dy[R,F] and x.  Assigns dx (A); dx may alias x. An fp8 copy may be transposed.
struct SwigluBackward {
  void* dx;
  const void* dy;
  const void* x;
  int64_t R, F;
  Fp8Copy fp8 = {};
};

// y = tanh(x).  Assigns y (A), n elements; y may alias x.
struct TanhForward {
  void* y;
  const void* x;
  int64_t n;
};

// dx = dy (1 - y^2).  Assigns dx (A); dx may alias dy.
struct TanhBackward {
  void* dx;
  const void* dy;
  const void* y;
  int64_t n;
};

// y[R,C] = residual + dropout(x).  Assigns y (A); y may alias residual or x. residual may be null
// (y = dropout(x)). Dropout's element index is global_row(rows, r) C + c.
struct ResidualForward {
  void* y;
  const void* residual;
  const void* x;
  int64_t R, C;
  Dropout dropout;
  GlobalRows rows;
};

// dx = dropout mask and scale applied to dy.  Assigns dx (A); dx may alias dy. (The gradient with
// respect to `residual` is dy itself.)
struct DropoutBackward {
  void* dx;
  const void* dy;
  int64_t R, C;
  Dropout dropout;
  GlobalRows rows;
};

// The same as a sum without a residual.
inline ResidualForward as_residual(const DropoutBackward& a) {
  ResidualForward sum{};
  sum.y = a.dx;
  sum.x = a.dy;
  sum.R = a.R;
  sum.C = a.C;
  sum.dropout = a.dropout;
  sum.rows = a.rows;
  return sum;
}

}  // namespace gptbench
