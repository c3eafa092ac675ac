#include "tf32_products.h"

#include <cstring>
#include <vector>

namespace gptbench {
namespace {

KernelTable exact;

std::vector<float> cut_off(const void* x, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  if (n > 0) std::memcpy(out.data(), x, out.size() * sizeof(float));
  for (float& value : out) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits &= ~uint32_t{0x1fff};
    std::memcpy(&value, &bits, sizeof bits);
  }
  return out;
}

void forward(Queue& q, const LinearForward& l) {
  const std::vector<float> x = cut_off(l.x, l.R * l.K), weight = cut_off(l.weight, l.N * l.K);
  LinearForward rounded = l;
  rounded.x = x.data();
  rounded.weight = weight.data();
  exact.linear_forward(q, rounded);
}

void backward_input(Queue& q, const LinearBackwardInput& l) {
  const std::vector<float> dy = cut_off(l.dy, l.R * l.N), weight = cut_off(l.weight, l.N * l.K);
  LinearBackwardInput rounded = l;
  rounded.dy = dy.data();
  rounded.weight = weight.data();
  exact.linear_backward_input(q, rounded);
}

void backward_weight(Queue& q, const LinearBackwardWeight& l) {
  const std::vector<float> dy = cut_off(l.dy, l.R * l.N), x = cut_off(l.x, l.R * l.K);
  LinearBackwardWeight rounded = l;
  rounded.dy = dy.data();
  rounded.x = x.data();
  rounded.dbias = nullptr;
  exact.linear_backward_weight(q, rounded);
  if (l.dbias != nullptr) exact.bias_backward(q, {l.dbias, l.dy, l.R, l.N, l.workspace});
}

void gelu_forward(Queue& q, const LinearGeluForward& f) {
  forward(q, f.linear);
  exact.gelu_forward(q, {f.activation, f.linear.y, f.linear.R * f.linear.N});
}

void gelu_backward_input(Queue& q, const LinearGeluBackwardInput& f) {
  backward_input(q, f.linear);
  exact.gelu_backward(q, {f.linear.dx, f.linear.dx, f.pre, f.linear.R * f.linear.K});
}

}  // namespace

KernelTable tf32_products(const KernelTable& table) {
  exact = table;
  KernelTable rounded = table;
  rounded.linear_forward = forward;
  rounded.linear_backward_input = backward_input;
  rounded.linear_backward_weight = backward_weight;
  rounded.linear_gelu_forward = gelu_forward;
  rounded.linear_gelu_backward_input = gelu_backward_input;
  return rounded;
}

}  // namespace gptbench
