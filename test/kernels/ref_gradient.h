// Gradients of the references against finite differences of themselves, in double: for a random
// direction d and the loss L = sum of w y, the gradient g of an input x must give
//   <g, d> = (L(x + h d) - L(x - h d)) / 2h + O(h^2 L''') + O(2^-53 |L| / h).
// With h = 2^-17, L below 1e3 and third derivatives along d below 1e3, both errors are below 1e-7.
#pragma once

#include <functional>

#include "kernel_test.h"

namespace gptbench::test {

using Vector = std::vector<double>;

inline double dot(const Vector& a, const Vector& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

class RefGradient : public ::testing::Test, public Devices {
 protected:
  const KernelTable& kernels = ref_kernels<double>();

  // `loss` reads x, which is moved along a random direction and put back.
  static void expect_gradient(Vector& x, const Vector& gradient,
                              const std::function<double()>& loss, const char* what) {
    constexpr double h = 0x1p-17;
    const Vector direction = random_array<double>(static_cast<int64_t>(x.size()), 999);
    const Vector at = x;
    const auto loss_at = [&](double step) {
      for (size_t i = 0; i < x.size(); ++i) x[i] = at[i] + step * direction[i];
      return loss();
    };
    const double difference = (loss_at(h) - loss_at(-h)) / (2.0 * h);
    x = at;
    EXPECT_NEAR(dot(gradient, direction), difference, 1e-7 * (1.0 + std::abs(difference))) << what;
  }
};

}  // namespace gptbench::test
