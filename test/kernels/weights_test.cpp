// Weights have the bits of fill_normal, rounded, wherever in the stream they begin and whatever
// draws them.
#include "kernel_test.h"

namespace gptbench::test {
namespace {

template <class A, class T>
void expect_drawn(const Devices& devices) {
  const int64_t most = 25000;  // more than the emulation's threads draw in one round
  const uint64_t starts[] = {0, 1, 2, 7, 4096, (uint64_t{1} << 33) + 3};
  for (const uint64_t first : starts)
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{5}, int64_t{511}, most}) {
      SCOPED_TRACE(testing::Message() << n << " from " << first);
      std::vector<float> numbers(static_cast<size_t>(n));
      fill_normal(numbers.data(), n, 9, RandomStream::weights, 4, first, 0.02f);
      std::vector<T> expected(numbers.size() + 1, T(7.0f)), drawn(expected);
      for (size_t i = 0; i < numbers.size(); ++i) assign(expected[i], value_of(numbers[i]));
      const DrawWeights draw{drawn.data(), n,     9,     4,
                             first,        0.02f, false, activation_type(compute_of<T>())};
      devices.host_kernels<A>().draw_weights(*devices.queue, draw);
      expect_same_bits(drawn, expected, "weights");  // and nothing behind them
    }
  std::vector<T> ones(1234, T(7.0f));
  devices.host_kernels<A>().draw_weights(
      *devices.queue, {ones.data(), 1233, 9, 4, 0, 0.02f, true, activation_type(compute_of<T>())});
  for (size_t i = 0; i < ones.size(); ++i) EXPECT_EQ(value_of(ones[i]), i < 1233 ? 1.0 : 7.0) << i;
}

}  // namespace

TYPED_TEST(HostKernel, WeightsHaveTheBitsOfTheStream) {
  using A = TypeParam;
  expect_drawn<A, A>(*this);
  if constexpr (sizeof(A) != sizeof(float)) expect_drawn<A, float>(*this);
}

}  // namespace gptbench::test
