#include "kernel_test.h"

namespace gptbench::test {
namespace {

// Elements between rows.
struct Gaps {
  int64_t x, y;
};
// None, rows of neither that are aligned where the first one is, and of one of them alone.
constexpr Gaps gaps[] = {{0, 0}, {3, 6}, {8, 3}, {3, 8}};

// From type X to type Y: whole arrays and rows that are part of wider ones, assigned and added.
template <class A, class X, class Y>
void expect_converts(const Devices& devices) {
  for (const int64_t R : {0, 1, 5})
    for (const int64_t C : {1, 16, 17, 9001})
      for (const Gaps& gap : gaps)
        for (const bool accumulate : {false, true}) {
          const int64_t x_row = C + gap.x, y_row = C + gap.y;
          const auto x = random_array<X>(R * x_row, 1);
          auto y = random_array<Y>(R * y_row, 2), y_ref(y);
          const double largest = max_abs(y) + max_abs(x);
          const auto arguments = [&](std::vector<Y>& to) {
            return Convert{to.data(),
                           x.data(),
                           R,
                           C,
                           y_row,
                           x_row,
                           activation_type(compute_of<Y>()),
                           activation_type(compute_of<X>()),
                           accumulate};
          };
          devices.host_kernels<A>().convert(*devices.queue, arguments(y));
          devices.ref_kernels<A>().convert(*devices.queue, arguments(y_ref));
          // A sum of two in float or double, rounded once to Y: results differ by one rounding.
          expect_close(y, y_ref, accumulate ? eps32 * largest : 0.0, accumulate ? ulp_of<Y>() : 0.0,
                       "y");
        }
}

}  // namespace

TYPED_TEST(HostKernel, ConvertEqualsReference) {
  using A = TypeParam;
  expect_converts<A, float, float>(*this);
  if constexpr (sizeof(A) == sizeof(float)) return;
  expect_converts<A, float, A>(*this);
  expect_converts<A, A, float>(*this);
  expect_converts<A, A, A>(*this);
}

}  // namespace gptbench::test
