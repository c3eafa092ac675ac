// Arguments of linear layers. Letters, types and terms: device/kernels.h.
#pragma once

#include <cstdint>

#include "device/arguments_types.h"

namespace gptbench {

// y[R,N] = x[R,K] W[N,K]^T + bias[N].  Assigns y (A). bias (A) may be null.
// FLOPs 2 R K N.
struct LinearForward {
  void* y;
  const void* x;
  const void* weight;
  const void* bias;
  int64_t R, K, N;
  Workspace workspace;
  Fp8Scales fp8 = {};
};

// dx[R,K] = dy[R,N] W[N,K].  Assigns dx (A). FLOPs 2 R K N.
struct LinearBackwardInput {
  void* dx;
  const void* dy;
  const void* weight;
  int64_t R, K, N;
  Workspace workspace;
  Fp8Scales fp8 = {};
};

// dW[N,K] += dy[R,N]^T x[R,K],  dbias[N] += sum over rows of dy.  Accumulates (S), but assigns dW
// where `accumulate` is false; then R > 0. dbias may be null. FLOPs 2 R K N.
struct LinearBackwardWeight {
  void* dweight;
  void* dbias;
  const void* dy;
  const void* x;
  int64_t R, K, N;
  Workspace workspace;
  Fp8Scales fp8 = {};
  bool accumulate = true;
};

// LinearForward and GeluForward in one: linear.y = x W^T + bias, activation = gelu(linear.y).
// Assigns both (A). A library may round linear.y after its gelu was formed from it.
struct LinearGeluForward {
  LinearForward linear;
  void* activation;  // [R, N]
};

// LinearBackwardInput and GeluBackward in one: linear.dx = (dy W) gelu'(pre). Assigns linear.dx
// (A). Where dbias is not null, the sums over rows of linear.dx are added to it, the gradient of
// the bias of the layer that formed `pre`; a library may round them to A before.
struct LinearGeluBackwardInput {
  LinearBackwardInput linear;
  const void* pre;        // [R, K] A: what gelu was formed from
  void* dbias = nullptr;  // [K] S
};

// dbias[N] += sum over rows of dy[R,N].  Accumulates (S). Apart from LinearBackwardWeight where
// sequence parallelism splits the rows: each rank sums its own.
struct BiasBackward {
  void* dbias;
  const void* dy;
  int64_t R, N;
  Workspace workspace = {};  // for partial sums; may be empty
};

}  // namespace gptbench
