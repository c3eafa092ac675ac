#include <cstring>

#include "device/host/gemm_converted.h"
#include "kernel_test.h"
#include "product_sums.h"

namespace gptbench::test {
namespace {

struct Shape {
  int64_t R, K, N;
};
// Odd ones, none, one row, rows a multiple of 4096 bytes, two large enough for every route of the
// GEMM library; more than a block of converted factors along each side of each GEMM.
constexpr int64_t past_mn = gemm_block_mn + 6, past_k = gemm_block_k + 18;
constexpr Shape shapes[] = {{0, 8, 8},
                            {1, 1, 1},
                            {1, 33, 65},
                            {7, 768, 5},
                            {65, 17, 33},
                            {130, 129, 70},
                            {3, 1024, 16},
                            {512, 1024, 264},
                            {past_mn, past_k, 130},
                            {33, past_mn + 70, past_mn}};

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
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N);
    const auto dy = random_array<A>(s.R * s.N, 1), w = random_array<A>(s.N * s.K, 2);
    auto dx = random_array<A>(s.R * s.K, 3);
    const auto ady = absolute(dy), aw = absolute(w);
    auto dx_ref = dx, magnitude = dx;
    const Workspace ws = this->gemm_workspace();
    this->template host_kernels<A>().linear_backward_input(
        *this->queue, {dx.data(), dy.data(), w.data(), s.R, s.K, s.N, ws});
    this->template ref_kernels<A>().linear_backward_input(
        *this->queue, {dx_ref.data(), dy.data(), w.data(), s.R, s.K, s.N, ws});
    this->template ref_kernels<A>().linear_backward_input(
        *this->queue, {magnitude.data(), ady.data(), aw.data(), s.R, s.K, s.N, ws});
    expect_sums(dx, dx_ref, magnitude, s.N, "dx");
  }
}

// A plan of a GPU fuses gelu with GEMMs; here each is its parts, to the bit.
TYPED_TEST(HostKernel, LinearGeluIsItsParts) {
  using A = TypeParam;
  constexpr int64_t R = 5, K = 33, N = 17;
  const auto x = random_array<A>(R * K, 1), w = random_array<A>(N * K, 2),
             bias = random_array<A>(N, 3), dy = random_array<A>(R * N, 4),
             pre = random_array<A>(R * K, 5);
  const Workspace ws = this->gemm_workspace();
  const auto equal = [](const auto& a, const auto& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
  };
  for (const KernelTable* kernels :
       {&this->template host_kernels<A>(), &this->template ref_kernels<A>()}) {
    std::vector<A> y(R * N), activation(R * N), y_alone(R * N), activation_alone(R * N);
    kernels->linear_gelu_forward(
        *this->queue,
        {{y.data(), x.data(), w.data(), bias.data(), R, K, N, ws}, activation.data()});
    kernels->linear_forward(*this->queue,
                            {y_alone.data(), x.data(), w.data(), bias.data(), R, K, N, ws});
    kernels->gelu_forward(*this->queue, {activation_alone.data(), y_alone.data(), R * N});
    EXPECT_TRUE(equal(y, y_alone));
    EXPECT_TRUE(equal(activation, activation_alone));

    std::vector<A> dx_alone(R * K);
    kernels->linear_backward_input(*this->queue,
                                   {dx_alone.data(), dy.data(), w.data(), R, K, N, ws});
    kernels->gelu_backward(*this->queue, {dx_alone.data(), dx_alone.data(), pre.data(), R * K});
    for (const bool with_bias : {false, true}) {
      std::vector<A> dx(R * K);
      auto dbias = random_array<float>(K, 6), dbias_alone = dbias;
      kernels->linear_gelu_backward_input(*this->queue,
                                          {{dx.data(), dy.data(), w.data(), R, K, N, ws},
                                           pre.data(),
                                           with_bias ? dbias.data() : nullptr});
      if (with_bias) kernels->bias_backward(*this->queue, {dbias_alone.data(), dx.data(), R, K});
      EXPECT_TRUE(equal(dx, dx_alone)) << with_bias;
      EXPECT_TRUE(equal(dbias, dbias_alone)) << with_bias;
    }
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
// gradient for each share (8 MiB here, with oneDNN 2.6 on x86): the sum is split instead, and
// converted factors come in small blocks.
TYPED_TEST(HostKernel, LinearBackwardWeightOfManyThreadsWithLittleWorkspace) {
  using A = TypeParam;
  const int64_t R = 2048, K = gemm_small_block_mn + 4, N = gemm_small_block_mn + 2;
  const auto dy = random_array<A>(R * N, 1), x = random_array<A>(R * K, 2);
  const auto ady = absolute(dy), ax = absolute(x);
  std::vector<float> dw(static_cast<size_t>(N * K)), dw_ref(dw), magnitude(dw);
  const Workspace little = this->workspace(2 * MiB);
  set_gemm_threads(16);
  this->template host_kernels<A>().linear_backward_weight(
      *this->queue, {dw.data(), nullptr, dy.data(), x.data(), R, K, N, little});
  set_gemm_threads(this->host_device->info().num_threads);
  const KernelTable& ref = this->template ref_kernels<A>();
  ref.linear_backward_weight(*this->queue,
                             {dw_ref.data(), nullptr, dy.data(), x.data(), R, K, N, little});
  ref.linear_backward_weight(*this->queue,
                             {magnitude.data(), nullptr, ady.data(), ax.data(), R, K, N, little});
  expect_sums(dw, dw_ref, magnitude, R, "dweight");
}

// The first micro-batch of a step overwrites what the last step left; long sums are split, too.
TYPED_TEST(HostKernel, LinearBackwardWeightAssigns) {
  using A = TypeParam;
  for (const Shape s : {Shape{5, 7, 3}, Shape{2048, 260, 258}}) {
    const auto dy = random_array<A>(s.R * s.N, 1), x = random_array<A>(s.R * s.K, 2);
    const auto ady = absolute(dy), ax = absolute(x);
    std::vector<float> dw(static_cast<size_t>(s.N * s.K), std::nanf("")), dw_ref(dw), magnitude(dw);
    const auto assign = [&](const KernelTable& kernels, std::vector<float>& to,
                            const std::vector<A>& of_dy, const std::vector<A>& of_x) {
      LinearBackwardWeight arguments{to.data(), nullptr, of_dy.data(), of_x.data(),
                                     s.R,       s.K,     s.N,          this->gemm_workspace()};
      arguments.accumulate = false;
      kernels.linear_backward_weight(*this->queue, arguments);
    };
    assign(this->template host_kernels<A>(), dw, dy, x);
    assign(this->template ref_kernels<A>(), dw_ref, dy, x);
    assign(this->template ref_kernels<A>(), magnitude, ady, ax);
    expect_sums(dw, dw_ref, magnitude, s.R, "dweight");
  }
}

// Ends on no boundary of the blocks in which columns and rows are summed.
TYPED_TEST(HostKernel, BiasBackwardEqualsReference) {
  using A = TypeParam;
  for (const int64_t R : {0, 1, 200})
    for (const int64_t N : {1, 33, 300}) {
      const auto dy = random_array<A>(R * N, 1);
      auto dbias = random_array<float>(N, 2), dbias_ref = dbias, magnitude = absolute(dbias);
      const auto ady = absolute(dy);
      this->template host_kernels<A>().bias_backward(*this->queue, {dbias.data(), dy.data(), R, N});
      const KernelTable& ref = this->template ref_kernels<A>();
      ref.bias_backward(*this->queue, {dbias_ref.data(), dy.data(), R, N});
      ref.bias_backward(*this->queue, {magnitude.data(), ady.data(), R, N});
      expect_sums(dbias, dbias_ref, magnitude, R, "dbias");
    }
}

// From 2^26 multiplications on, and beyond a block of converted factors, which the in-run
// verification crosses with small GEMMs, GEMMs of bf16 factors go the selected way; others the
// library's.
TEST(Bf16Products, LargeOnesGoTheChosenWay) {
  const auto implementation = [](Bf16Products products, int64_t m, int64_t n = 512,
                                 int64_t k = 512) {
    return gemm_implementation({DType::bf16,
                                DType::bf16,
                                m,
                                n,
                                k,
                                {nullptr, k, false},
                                {nullptr, k, true},
                                nullptr,
                                n,
                                nullptr,
                                false,
                                products});
  };
  const std::string converted = "sgemm of converted blocks";
  EXPECT_EQ(implementation(Bf16Products::converted, 256), converted);
  const std::string library = implementation(Bf16Products::library, 255);
  EXPECT_EQ(implementation(Bf16Products::converted, 255), library);
  const int64_t beyond = gemm_block_mn + 1;
  EXPECT_EQ(implementation(Bf16Products::converted, 24, beyond, 64), converted);
  EXPECT_EQ(implementation(Bf16Products::converted, beyond, 24, 64), converted);
  EXPECT_EQ(implementation(Bf16Products::converted, 24, 64, beyond), converted);
  EXPECT_EQ(implementation(Bf16Products::converted, gemm_block_mn, 24, 64), library);
  if (library != converted) {  // the library has bf16 on this processor
    EXPECT_NE(implementation(Bf16Products::library, 256), converted);
  }
}

namespace {

// A clock by which converted products take `converted_s` and the library's a second. It is read
// before and after each product, of which the library's are first.
double fake_s = 0.0, converted_s = 0.0;
int readings = 0;
double fake_clock_s() {
  fake_s += readings++ / 2 % 2 == 1 ? converted_s : 1.0;
  return fake_s;
}

}  // namespace

TEST(Bf16Products, AreConvertedWhereThatSavesAFifth) {
  converted_s = 0.79;
  EXPECT_EQ(measure_bf16_products(fake_clock_s), Bf16Products::converted);
  readings = 0;
  converted_s = 0.81;
  EXPECT_EQ(measure_bf16_products(fake_clock_s), Bf16Products::library);
}

}  // namespace gptbench::test
