// Operations that are one where a library fuses them, as the two that they are.
#pragma once

#include "device/kernels.h"

namespace gptbench {

template <void (*linear)(Queue&, const LinearForward&), void (*gelu)(Queue&, const GeluForward&)>
void linear_then_gelu(Queue& queue, const LinearGeluForward& f) {
  linear(queue, f.linear);
  gelu(queue, {f.activation, f.linear.y, f.linear.R * f.linear.N});
}

template <void (*linear)(Queue&, const LinearBackwardInput&),
          void (*gelu)(Queue&, const GeluBackward&)>
void linear_then_gelu_backward(Queue& queue, const LinearGeluBackwardInput& f) {
  linear(queue, f.linear);
  gelu(queue, {f.linear.dx, f.linear.dx, f.pre, f.linear.R * f.linear.K});
}

}  // namespace gptbench
