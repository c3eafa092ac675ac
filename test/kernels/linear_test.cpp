#include "device/gemm_onednn.h"
#include "kernel_test.h"
#include "product_sums.h"

namespace gptbench::test {
namespace {

struct Shape {
  int64_t R, K, N;
};
// Odd ones, none, one row, rows a multiple of 4096 bytes, two large enough for every route of the
// GEMM library, of which one is cut into ragged blocks.
constexpr Shape shapes[] = {{0, 8, 8},     {1, 1, 1},        {1, 33, 65},
                            {7, 768, 5},   {65, 17, 33},     {130, 129, 70},
                            {3, 1024, 16}, {512, 1024, 264}, {1030, 530, 130}};

}  // namespace

TYPED_TEST(HostKernel, LinearForwardEqualsReference) {
  using A = TypeParam;
  for (const Shape& s : shapes)
    for (const bool with_bias : {false, true}) {
      SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N << " " << with_bias);
      const auto x = random_array<A>(s.R * s.K, 1), w = random_array<A>(s.N * s.K, 2),
                 bias = random_array<A>(s.N, 3);
      const auto ax = absolute(x), aw = absolute(w), abias = absolute(bias);
      std::vector<A> y(static_cast<size_t>(s.R * s.N)), y_ref(y), magnitude(y);
      const Workspace ws = this->gemm_workspace();
      this->template host_kernels<A>().linear_forward(
          *this->queue,
          {y.data(), x.data(), w.data(), with_bias ? bias.data() : nullptr, s.R, s.K, s.N, ws});
      this->template ref_kernels<A>().linear_forward(
          *this->queue,
          {y_ref.data(), x.data(), w.data(), with_bias ? bias.data() : nullptr, s.R, s.K, s.N, ws});
      this->template ref_kernels<A>().linear_forward(
          *this->queue, {magnitude.data(), ax.data(), aw.data(), with_bias ? abias.data() : nullptr,
                         s.R, s.K, s.N, ws});
      expect_sums(y, y_ref, magnitude, s.K, "y");
    }
}

TYPED_TEST(HostKernel, LinearBackwardInputEqualsReference) {
  using A = TypeParam;
  for (const Shape& s : shapes)
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N << " " << accumulate);
      const auto dy = random_array<A>(s.R * s.N, 1), w = random_array<A>(s.N * s.K, 2);
      auto dx = random_array<A>(s.R * s.K, 3);
      const auto ady = absolute(dy), aw = absolute(w);
      auto dx_ref = dx, magnitude = absolute(dx);
      const Workspace ws = this->gemm_workspace();
      this->template host_kernels<A>().linear_backward_input(
          *this->queue, {dx.data(), dy.data(), w.data(), s.R, s.K, s.N, accumulate, ws});
      this->template ref_kernels<A>().linear_backward_input(
          *this->queue, {dx_ref.data(), dy.data(), w.data(), s.R, s.K, s.N, accumulate, ws});
      this->template ref_kernels<A>().linear_backward_input(
          *this->queue, {magnitude.data(), ady.data(), aw.data(), s.R, s.K, s.N, accumulate, ws});
      expect_sums(dx, dx_ref, magnitude, s.N, "dx");
    }
}

TYPED_TEST(HostKernel, LinearBackwardWeightEqualsReference) {
  using A = TypeParam;
  for (const Shape& s : shapes)
    for (const bool with_bias : {false, true}) {
      SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N << " " << with_bias);
      const auto dy = random_array<A>(s.R * s.N, 1), x = random_array<A>(s.R * s.K, 2);
      auto dw = random_array<float>(s.N * s.K, 3), dbias = random_array<float>(s.N, 4);
      const auto ady = absolute(dy), ax = absolute(x);
      auto dw_ref = dw, dbias_ref = dbias, magnitude = absolute(dw),
           bias_magnitude = absolute(dbias);
      const Workspace ws = this->gemm_workspace();
      const KernelTable& ref = this->template ref_kernels<A>();
      this->template host_kernels<A>().linear_backward_weight(
          *this->queue,
          {dw.data(), with_bias ? dbias.data() : nullptr, dy.data(), x.data(), s.R, s.K, s.N, ws});
      ref.linear_backward_weight(
          *this->queue, {dw_ref.data(), with_bias ? dbias_ref.data() : nullptr, dy.data(), x.data(),
                         s.R, s.K, s.N, ws});
      ref.linear_backward_weight(*this->queue, {magnitude.data(), bias_magnitude.data(), ady.data(),
                                                ax.data(), s.R, s.K, s.N, ws});
      expect_sums(dw, dw_ref, magnitude, s.R, "dweight");
      expect_sums(dbias, dbias_ref, bias_magnitude, s.R, "dbias");
    }
}

TYPED_TEST(HostKernel, LinearIsTheSameFromRunToRun) {
  using A = TypeParam;
  const Shape s{300, 512, 520};
  const auto x = random_array<A>(s.R * s.K, 1), dy = random_array<A>(s.R * s.N, 2);
  std::vector<float> first, second;
  for (auto* dw : {&first, &second}) {
    dw->assign(static_cast<size_t>(s.N * s.K), 0.0f);
    this->template host_kernels<A>().linear_backward_weight(
        *this->queue,
        {dw->data(), nullptr, dy.data(), x.data(), s.R, s.K, s.N, this->gemm_workspace()});
  }
  expect_same_bits(first, second, "dweight");
}

// 16 threads share out a long sum over rows as well, and then the library wants a copy of the
// gradient for each share (2.9 MiB here, with oneDNN 2.6 on x86): the sum is split instead.
TYPED_TEST(HostKernel, LinearBackwardWeightOfManyThreadsWithLittleWorkspace) {
  using A = TypeParam;
  const int64_t R = 2048, K = 256, N = 96;
  const auto dy = random_array<A>(R * N, 1), x = random_array<A>(R * K, 2);
  const auto ady = absolute(dy), ax = absolute(x);
  std::vector<float> dw(static_cast<size_t>(N * K)), dw_ref(dw), magnitude(dw);
  const Workspace little = this->workspace(2 * MiB);
  set_gemm_threads(16);
  this->template host_kernels<A>().linear_backward_weight(
      *this->queue, {dw.data(), nullptr, dy.data(), x.data(), R, K, N, little});
  set_gemm_threads(this->host_device->num_threads());
  const KernelTable& ref = this->template ref_kernels<A>();
  ref.linear_backward_weight(*this->queue,
                             {dw_ref.data(), nullptr, dy.data(), x.data(), R, K, N, little});
  ref.linear_backward_weight(*this->queue,
                             {magnitude.data(), nullptr, ady.data(), ax.data(), R, K, N, little});
  expect_sums(dw, dw_ref, magnitude, R, "dweight");
}

}  // namespace gptbench::test
