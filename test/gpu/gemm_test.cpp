// Matrix products of the GPU against the reference.
#include "base/units.h"
#include "cuda/cuda_queue.h"
#include "cuda/gemm_cublaslt.h"
#include "cuda/kernels.h"
#include "gpu_test.h"
#include "product_sums.h"

namespace gptbench::test {
namespace {

template <class A>
class CudaGemm : public ::testing::Test, public Devices {
 protected:
  std::unique_ptr<Queue> gpu_queue = gpu().make_queue("test");
  OnDevice<char> scratch{*gpu_queue,
                         std::vector<char>(gemm_workspace_bytes, static_cast<char>(-1))};
  Workspace gpu_workspace() { return {scratch.data(), gemm_workspace_bytes}; }
};
TYPED_TEST_SUITE(CudaGemm, StorageTypes, );
class CudaGemmTf32 : public CudaGemm<float> {};

struct Shape {
  int64_t R, K, N;
};
// Multiples of 8 as in every model, and sizes whose rows do not start at multiples of 16 bytes.
constexpr Shape shapes[] = {{0, 8, 8},        {8, 8, 8},        {1, 64, 256}, {100, 72, 40},
                            {200, 384, 1152}, {512, 1024, 264}, {33, 17, 65}, {7, 768, 5}};

// By how much each element of y = x W^T + bias may be off, as expect_sums() has it; where rows do
// not start at multiples of 16 bytes cuBLASLt rounds the product to A before it adds the bias.
template <class A>
std::vector<double> linear_bounds(const std::vector<A>& y, const std::vector<A>& magnitudes,
                                  const std::vector<A>& bias, int64_t terms) {
  std::vector<double> bounds(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const double size = std::abs(value_of(y[i]));
    bounds[i] = 1.02 * static_cast<double>(terms + 2) * eps32 * value_of(magnitudes[i]) +
                ulp_of<A>() * size;
    if (!bias.empty())
      bounds[i] += 0.5 * ulp_of<A>() * (size + std::abs(value_of(bias[i % bias.size()])));
  }
  return bounds;
}

}  // namespace

TYPED_TEST(CudaGemm, Forward) {
  using A = TypeParam;
  const ComputeType compute = compute_of<A>();
  for (const Shape& s : shapes)
    for (const bool with_bias : {false, true}) {
      SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N << " " << with_bias);
      const auto x = random_array<A>(s.R * s.K, 1), w = random_array<A>(s.N * s.K, 2),
                 bias = random_array<A>(s.N, 3);
      const auto ax = absolute(x), aw = absolute(w), abias = absolute(bias);
      std::vector<A> y_ref(static_cast<size_t>(s.R * s.N)), magnitude(y_ref);
      const OnDevice<A> dx(*this->gpu_queue, x), dw(*this->gpu_queue, w),
          dbias(*this->gpu_queue, bias), dy(*this->gpu_queue, y_ref);
      gpu().kernels(compute).linear_forward(
          *this->gpu_queue, {dy.data(), dx.data(), dw.data(), with_bias ? dbias.data() : nullptr,
                             s.R, s.K, s.N, this->gpu_workspace()});
      const KernelTable& ref = this->template ref_kernels<A>();
      ref.linear_forward(
          *this->queue,
          {y_ref.data(), x.data(), w.data(), with_bias ? bias.data() : nullptr, s.R, s.K, s.N, {}});
      ref.linear_forward(*this->queue, {magnitude.data(),
                                        ax.data(),
                                        aw.data(),
                                        with_bias ? abias.data() : nullptr,
                                        s.R,
                                        s.K,
                                        s.N,
                                        {}});
      expect_close(dy.read(), y_ref,
                   linear_bounds(y_ref, magnitude, with_bias ? bias : std::vector<A>(), s.K), 0.0,
                   "y");
    }
}

TYPED_TEST(CudaGemm, BackwardInput) {
  using A = TypeParam;
  const ComputeType compute = compute_of<A>();
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N);
    const auto dy = random_array<A>(s.R * s.N, 1), w = random_array<A>(s.N * s.K, 2);
    auto dx_ref = random_array<A>(s.R * s.K, 3);
    const auto ady = absolute(dy), aw = absolute(w);
    auto magnitude = absolute(dx_ref);
    const OnDevice<A> on_dy(*this->gpu_queue, dy), on_w(*this->gpu_queue, w),
        on_dx(*this->gpu_queue, dx_ref);
    gpu().kernels(compute).linear_backward_input(
        *this->gpu_queue,
        {on_dx.data(), on_dy.data(), on_w.data(), s.R, s.K, s.N, this->gpu_workspace()});
    const KernelTable& ref = this->template ref_kernels<A>();
    ref.linear_backward_input(*this->queue,
                              {dx_ref.data(), dy.data(), w.data(), s.R, s.K, s.N, {}});
    ref.linear_backward_input(*this->queue,
                              {magnitude.data(), ady.data(), aw.data(), s.R, s.K, s.N, {}});
    expect_sums(on_dx.read(), dx_ref, magnitude, s.N, "dx");
  }
}

TYPED_TEST(CudaGemm, BackwardWeightAccumulatesInF32) {
  using A = TypeParam;
  const ComputeType compute = compute_of<A>();
  for (const Shape& s : shapes)
    for (const auto& [with_bias, accumulate] :
         {std::pair{false, true}, std::pair{true, true}, std::pair{true, false}}) {
      if (s.R == 0 && !accumulate) continue;  // nothing is assigned without rows
      SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N << " " << with_bias
                                      << " accumulate " << accumulate);
      const auto dy = random_array<A>(s.R * s.N, 1), x = random_array<A>(s.R * s.K, 2);
      auto dw_ref = random_array<float>(s.N * s.K, 3), dbias_ref = random_array<float>(s.N, 4);
      if (!accumulate) dw_ref.assign(dw_ref.size(), std::nanf(""));  // not read
      const auto ady = absolute(dy), ax = absolute(x);
      auto magnitude = absolute(dw_ref), bias_magnitude = absolute(dbias_ref);
      const OnDevice<A> on_dy(*this->gpu_queue, dy), on_x(*this->gpu_queue, x);
      const OnDevice<float> on_dw(*this->gpu_queue, dw_ref), on_dbias(*this->gpu_queue, dbias_ref);
      LinearBackwardWeight arguments{on_dw.data(), with_bias ? on_dbias.data() : nullptr,
                                     on_dy.data(), on_x.data(),
                                     s.R,          s.K,
                                     s.N,          this->gpu_workspace()};
      arguments.accumulate = accumulate;
      gpu().kernels(compute).linear_backward_weight(*this->gpu_queue, arguments);
      const auto reference = [&](float* dw, float* dbias, const A* of_dy, const A* of_x) {
        LinearBackwardWeight on_host{dw, with_bias ? dbias : nullptr, of_dy, of_x, s.R, s.K, s.N,
                                     {}};
        on_host.accumulate = accumulate;
        this->template ref_kernels<A>().linear_backward_weight(*this->queue, on_host);
      };
      reference(dw_ref.data(), dbias_ref.data(), dy.data(), x.data());
      reference(magnitude.data(), bias_magnitude.data(), ady.data(), ax.data());
      expect_sums(on_dw.read(), dw_ref, magnitude, s.R, "dweight");
      expect_sums(on_dbias.read(), dbias_ref, bias_magnitude, s.R, "dbias");
    }
}

// With GELU, by way of the library's epilogue where it has one and of our kernel. Products as
// above; GELU's derivative is below 1.13, and the library's hyperbolic tangent may be that of the
// hardware, off by 2^-10.987 (PTX ISA, tanh.approx), which GELU takes times |x| / 2 and its
// derivative, at |x| < 8, times less than 8.
TYPED_TEST(CudaGemm, WithGeluFusedAndNot) {
  using A = TypeParam;
  const ComputeType compute = compute_of<A>();
  const DType type = activation_type(compute);
  const KernelTable& ref = this->template ref_kernels<A>();
  constexpr double tanh_error = 0x1p-10;
  for (const int fused : {0, 1, 2})
    for (const Shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N << " " << fused);
      CublasLtGemm gemms(false);
      for (const GemmOp op : {GemmOp::forward, GemmOp::backward_input}) {
        GemmSelection other;  // of another product: what the others follow
        other.fused = fused;
        gemms.selections().by_key[{op, type, 1, 1, 1, false, true}] = other;
      }
      const auto x = random_array<A>(s.R * s.K, 1), w = random_array<A>(s.N * s.K, 2, 0.1),
                 bias = random_array<A>(s.N, 3), dy = random_array<A>(s.R * s.N, 4),
                 pre = random_array<A>(s.R * s.K, 5);
      std::vector<A> y(static_cast<size_t>(s.R * s.N)), activation(y), magnitude(y);
      std::vector<A> dx(static_cast<size_t>(s.R * s.K)), dx_ref(dx), dx_magnitude(dx);
      Queue& on_gpu = *this->gpu_queue;
      const OnDevice<A> on_x(on_gpu, x), on_w(on_gpu, w), on_bias(on_gpu, bias), on_dy(on_gpu, dy),
          on_pre(on_gpu, pre), on_y(on_gpu, y), on_activation(on_gpu, y), on_dx(on_gpu, dx);
      auto dbias = random_array<float>(s.K, 6);
      const OnDevice<float> on_dbias(on_gpu, dbias);
      gemms.gelu_forward(on_gpu, type,
                         {{on_y.data(), on_x.data(), on_w.data(), on_bias.data(), s.R, s.K, s.N,
                           this->gpu_workspace()},
                          on_activation.data()},
                         cuda_kernels(compute));
      gemms.gelu_backward_input(
          on_gpu, type,
          {{on_dx.data(), on_dy.data(), on_w.data(), s.R, s.K, s.N, this->gpu_workspace()},
           on_pre.data(),
           on_dbias.data()},
          cuda_kernels(compute));
      ref.linear_gelu_forward(
          *this->queue,
          {{y.data(), x.data(), w.data(), bias.data(), s.R, s.K, s.N, {}}, activation.data()});
      const auto ax = absolute(x), aw = absolute(w), abias = absolute(bias), ady = absolute(dy);
      ref.linear_forward(*this->queue,
                         {magnitude.data(), ax.data(), aw.data(), abias.data(), s.R, s.K, s.N, {}});
      const std::vector<double> bounds = linear_bounds(y, magnitude, bias, s.K);
      expect_close(on_y.read(), y, bounds, 0.0, "y");
      const auto seen = on_activation.read();
      for (size_t i = 0; i < seen.size(); ++i)
        ASSERT_LE(std::abs(value_of(seen[i]) - value_of(activation[i])),
                  1.13 * bounds[i] + tanh_error * std::abs(value_of(y[i])) +
                      ulp_of<A>() * std::abs(value_of(activation[i])))
            << "gelu " << i;
      ref.linear_gelu_backward_input(
          *this->queue,
          {{dx_ref.data(), dy.data(), w.data(), s.R, s.K, s.N, {}}, pre.data(), dbias.data()});
      ref.linear_backward_input(*this->queue,
                                {dx_magnitude.data(), ady.data(), aw.data(), s.R, s.K, s.N, {}});
      const auto seen_dx = on_dx.read();
      const double error = 1.02 * static_cast<double>(s.N + 2) * eps32 * 1.13 + 8.0 * tanh_error +
                           2.0 * 1.13 * ulp_of<A>();
      for (size_t i = 0; i < seen_dx.size(); ++i)
        ASSERT_LE(std::abs(value_of(seen_dx[i]) - value_of(dx_ref[i])),
                  error * value_of(dx_magnitude[i]))
            << "dx " << i;
      // Sums over rows; the library's are rounded to A.
      const auto seen_dbias = on_dbias.read();
      for (size_t k = 0; k < seen_dbias.size(); ++k) {
        double sum = std::abs(static_cast<double>(dbias[k])) + 1.0;
        for (int64_t r = 0; r < s.R; ++r)
          sum += 1.13 * value_of(dx_magnitude[static_cast<size_t>(r * s.K) + k]);
        ASSERT_LE(std::abs(value_of(seen_dbias[k]) - value_of(dbias[k])),
                  (error + static_cast<double>(s.R + 2) * eps32 + ulp_of<A>()) * sum)
            << "dbias " << k;
      }
    }
}

// Sums of K products of 1 + 2^-11 and 1. In f32 they are exact in any order. tf32 has no number
// between 1 and 1 + 2^-10: tensor cores cut the factor off to 1, a conversion before them, which is
// what the emulated library does, rounds it up.
TEST_F(CudaGemmTf32, FactorsAreRoundedOnlyWhereRequested) {
  constexpr int64_t rows = 128, K = 64, N = 128;
  const OnDevice<float> x(*gpu_queue, std::vector<float>(rows * K, 1.0f + 0x1p-11f)),
      w(*gpu_queue, std::vector<float>(N * K, 1.0f)), y(*gpu_queue, std::vector<float>(rows * N));
  const auto product = [&](bool tf32) {
    CublasLtGemm gemms(tf32);
    gemms.forward(stream_of(*gpu_queue), DType::f32,
                  {y.data(), x.data(), w.data(), nullptr, rows, K, N, gpu_workspace()});
    return y.read();
  };
  constexpr float terms = K;
  EXPECT_EQ(product(false), std::vector<float>(rows * N, terms * (1.0f + 0x1p-11f)));
  for (const float sum : product(true))
    ASSERT_TRUE(sum == terms || sum == terms * (1.0f + 0x1p-10f)) << sum - terms;
}

}  // namespace gptbench::test
