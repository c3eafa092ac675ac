// Linear layers with fp8 factors: the host's products of decoded blocks against plain loops over
// the same bytes.
#include "base/fp8.h"
#include "kernel_test.h"

namespace gptbench::test {
namespace {

struct Shape {
  int64_t R, K, N;
};
// None, one, odd ones, more than a block of the host along each side.
constexpr Shape shapes[] = {{0, 16, 16},   {1, 1, 1},       {7, 33, 65},
                            {530, 48, 32}, {16, 1040, 528}, {24, 16, 1100}};

constexpr float left_scale = 0x1p6f, right_scale = 0x1p-3f;
constexpr float left = 1.0f / left_scale, right = 1.0f / right_scale;

// An fp8 array of random numbers, as it is and transposed; magnitudes up to about 3.
struct Factor {
  std::vector<uint8_t> as_it_is, transposed;
  const void* data(bool turned) const { return turned ? transposed.data() : as_it_is.data(); }
};

template <class A>
Factor random_factor(const Devices& devices, int64_t R, int64_t C, uint32_t instance, DType type,
                     float scale, bool magnitudes) {
  auto x = random_array<A>(R * C, instance, 0.7);
  if (magnitudes)
    for (A& each : x) assign(each, std::abs(value_of(each)));
  Factor factor;
  factor.as_it_is.resize(static_cast<size_t>(R * C));
  factor.transposed.resize(static_cast<size_t>(padded_rows(R) * C));
  float amax = 0.0f;
  devices.template ref_kernels<A>().fp8_quantize(
      *devices.queue,
      {factor.as_it_is.data(), factor.transposed.data(), &amax, x.data(), &scale, R, C, type});
  return factor;
}

// Products of fp8 numbers are exact in f32, so that only sums round: at most terms eps32 times the
// sum of magnitudes, in any order (Higham, section 3.1), and once to the result's type.
template <class T>
void expect_sums(const std::vector<T>& x, const std::vector<T>& reference,
                 const std::vector<T>& magnitudes, int64_t terms, const char* what) {
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(std::abs(value_of(x[i]) - value_of(reference[i])),
              1.02 * static_cast<double>(terms + 2) * eps32 * value_of(magnitudes[i]) +
                  ulp_of<T>() * std::abs(value_of(reference[i])))
        << what << " element " << i;
}

}  // namespace

TYPED_TEST(HostKernel, Fp8LinearForwardEqualsReference) {
  using A = TypeParam;
  if (std::is_same_v<A, float16>) GTEST_SKIP() << "fp8 copies stand beside bf16 and f32, not f16";
  for (const Shape& s : shapes)
    for (const bool with_bias : {false, true}) {
      SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N << " " << with_bias);
      std::vector<A> results[3];
      for (int pass = 0; pass < 3; ++pass) {  // host, reference, sums of magnitudes
        const bool magnitudes = pass == 2;
        const Factor x =
            random_factor<A>(*this, s.R, s.K, 1, DType::fp8_e4m3, left_scale, magnitudes);
        const Factor w =
            random_factor<A>(*this, s.N, s.K, 2, DType::fp8_e4m3, right_scale, magnitudes);
        auto bias = random_array<A>(s.N, 3);
        if (magnitudes)
          for (A& each : bias) assign(each, std::abs(value_of(each)));
        results[pass].resize(static_cast<size_t>(s.R * s.N));
        const KernelTable& kernels =
            pass == 0 ? this->template host_kernels<A>() : this->template ref_kernels<A>();
        kernels.linear_forward(*this->queue, {results[pass].data(),
                                              x.data(false),
                                              w.data(false),
                                              with_bias ? bias.data() : nullptr,
                                              s.R,
                                              s.K,
                                              s.N,
                                              this->gemm_workspace(),
                                              {&left, &right, false}});
      }
      expect_sums(results[0], results[1], results[2], s.K, "y");
    }
}

TYPED_TEST(HostKernel, Fp8LinearBackwardInputEqualsReference) {
  using A = TypeParam;
  if (std::is_same_v<A, float16>) GTEST_SKIP() << "fp8 copies stand beside bf16 and f32, not f16";
  for (const Shape& s : shapes)
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N << " " << transposed);
      std::vector<A> results[3];
      for (int pass = 0; pass < 3; ++pass) {
        const bool magnitudes = pass == 2;
        const Factor dy =
            random_factor<A>(*this, s.R, s.N, 1, DType::fp8_e5m2, left_scale, magnitudes);
        // W^T has rows of N, which on GPUs is a multiple of 16; here any.
        const Factor w =
            random_factor<A>(*this, s.N, s.K, 2, DType::fp8_e4m3, right_scale, magnitudes);
        if (transposed && padded_rows(s.N) != s.N) continue;
        results[pass] = random_array<A>(s.R * s.K, 3);
        const KernelTable& kernels =
            pass == 0 ? this->template host_kernels<A>() : this->template ref_kernels<A>();
        kernels.linear_backward_input(*this->queue, {results[pass].data(),
                                                     dy.data(false),
                                                     w.data(transposed),
                                                     s.R,
                                                     s.K,
                                                     s.N,
                                                     this->gemm_workspace(),
                                                     {&left, &right, transposed}});
      }
      expect_sums(results[0], results[1], results[2], s.N, "dx");
    }
}

TYPED_TEST(HostKernel, Fp8LinearBackwardWeightEqualsReference) {
  using A = TypeParam;
  if (std::is_same_v<A, float16>) GTEST_SKIP() << "fp8 copies stand beside bf16 and f32, not f16";
  for (const Shape& s : shapes)
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N << " " << transposed);
      std::vector<float> results[3];
      for (int pass = 0; pass < 3; ++pass) {
        const bool magnitudes = pass == 2;
        const Factor dy =
            random_factor<A>(*this, s.R, s.N, 1, DType::fp8_e5m2, left_scale, magnitudes);
        const Factor x =
            random_factor<A>(*this, s.R, s.K, 2, DType::fp8_e4m3, right_scale, magnitudes);
        results[pass] = random_array<float>(s.N * s.K, 3);
        if (magnitudes)
          for (float& each : results[pass]) each = std::abs(each);
        const KernelTable& kernels =
            pass == 0 ? this->template host_kernels<A>() : this->template ref_kernels<A>();
        kernels.linear_backward_weight(*this->queue, {results[pass].data(),
                                                      nullptr,
                                                      dy.data(transposed),
                                                      x.data(transposed),
                                                      s.R,
                                                      s.K,
                                                      s.N,
                                                      this->gemm_workspace(),
                                                      {&left, &right, transposed}});
      }
      expect_sums(results[0], results[1], results[2], s.R, "dW");
    }
}

}  // namespace gptbench::test
