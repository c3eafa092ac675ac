// What cuBLASLt is asked for, evaluated by plain loops over column-major arrays, against the
// reference kernels.
#include "cuda/gemm_description.h"

#include <array>

#include "base/error.h"
#include "base/fp8.h"
#include "configs.h"
#include "kernel_test.h"

namespace gptbench::test {
namespace {

// Element (row, column) of op(X), X column-major.
double element(const std::vector<float>& x, int64_t ld, bool transpose, int64_t row,
               int64_t column) {
  const int64_t at = transpose ? column + row * ld : row + column * ld;
  return static_cast<double>(x[static_cast<size_t>(at)]);
}

// The tanh form, which is the library's own.
double inner(double x) {
  return std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
}
double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(inner(x)));
}
double gelu_derivative(double x) {
  const double t = std::tanh(inner(x));
  const double slope = std::sqrt(2.0 / std::acos(-1.0)) * (1.0 + 3.0 * 0.044715 * x * x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope;
}

// As the library does it: D = op(A) op(B) + beta D, bias along rows added, or sums of op(B) over k
// assigned to it.
void evaluate(const GemmDescription& g, const std::vector<float>& a, const std::vector<float>& b,
              std::vector<float>& d, std::vector<float>* bias, std::vector<float>* aux = nullptr) {
  for (int64_t j = 0; j < g.n; ++j)
    for (int64_t i = 0; i < g.m; ++i) {
      double sum = 0.0;
      for (int64_t l = 0; l < g.k; ++l)
        sum += element(a, g.lda, g.transpose_a, i, l) * element(b, g.ldb, g.transpose_b, l, j);
      float& out = d[static_cast<size_t>(i + j * g.ldd)];
      if (g.accumulate) sum += static_cast<double>(out);
      if (g.epilogue == GemmEpilogue::bias || g.epilogue == GemmEpilogue::gelu_bias)
        sum += static_cast<double>((*bias)[static_cast<size_t>(i)]);
      if (has_aux(g.epilogue)) {
        float& beside = (*aux)[static_cast<size_t>(i + j * g.ldd)];
        if (g.epilogue == GemmEpilogue::gelu_gradient) {
          sum *= gelu_derivative(static_cast<double>(beside));
        } else {
          beside = static_cast<float>(sum);
          sum = gelu(sum);
        }
      }
      out = static_cast<float>(sum);
    }
  if (g.epilogue != GemmEpilogue::bias_gradient) return;
  for (int64_t j = 0; j < g.n; ++j) {
    double sum = 0.0;
    for (int64_t l = 0; l < g.k; ++l) sum += element(b, g.ldb, g.transpose_b, l, j);
    (*bias)[static_cast<size_t>(j)] = static_cast<float>(sum);
  }
}

struct Arrays {
  int64_t R, K, N;
  std::vector<float> x = random_array<float>(R * K, 1), weight = random_array<float>(N * K, 2),
                     dy = random_array<float>(R * N, 3), bias = random_array<float>(N, 4);
  const std::vector<float>& operator[](GemmArray which) const {
    return which == GemmArray::x ? x : which == GemmArray::weight ? weight : dy;
  }
};

constexpr int64_t shapes[][3] = {{1, 1, 1}, {5, 3, 7}, {4, 16, 2}, {17, 8, 24}};

class GemmDescriptions : public ::testing::Test, public Devices {};

}  // namespace

// Both sum exact products of floats in double, in the same order but for the bias, and round once.
TEST_F(GemmDescriptions, Forward) {
  for (const auto& [R, K, N] : shapes)
    for (const bool with_bias : {false, true}) {
      Arrays arrays{R, K, N};
      std::vector<float> y(static_cast<size_t>(R * N), 9.0f), reference(y);
      const GemmDescription g =
          describe_gemm({GemmOp::forward, DType::f32, R, K, N, with_bias}, false);
      evaluate(g, arrays[g.a], arrays[g.b], y, &arrays.bias);
      ref_kernels<float>().linear_forward(*queue, {reference.data(),
                                                   arrays.x.data(),
                                                   arrays.weight.data(),
                                                   with_bias ? arrays.bias.data() : nullptr,
                                                   R,
                                                   K,
                                                   N,
                                                   {}});
      expect_close(y, reference, 1e-6, ulp_of<float>(), "y");
    }
}

// With GELU, fused and not: the product where the kernel keeps it, its GELU where that goes.
TEST_F(GemmDescriptions, ForwardWithGelu) {
  for (const auto& [R, K, N] : shapes)
    for (const bool with_bias : {false, true})
      for (const bool fused : {false, true}) {
        Arrays arrays{R, K, N};
        std::vector<float> d(static_cast<size_t>(R * N), 9.0f), aux(d), y(d), activation(d);
        const GemmDescription g =
            describe_gemm({GemmOp::forward, DType::f32, R, K, N, with_bias, true}, fused);
        EXPECT_EQ(has_aux(g.epilogue), fused);
        evaluate(g, arrays[g.a], arrays[g.b], d, &arrays.bias, &aux);
        ref_kernels<float>().linear_gelu_forward(*queue, {{y.data(),
                                                           arrays.x.data(),
                                                           arrays.weight.data(),
                                                           with_bias ? arrays.bias.data() : nullptr,
                                                           R,
                                                           K,
                                                           N,
                                                           {}},
                                                          activation.data()});
        expect_close(fused ? aux : d, y, 1e-6, ulp_of<float>(), "y");
        if (fused) expect_close(d, activation, 1e-5, 4 * ulp_of<float>(), "gelu");
      }
}

TEST_F(GemmDescriptions, BackwardInputWithGelu) {
  for (const auto& [R, K, N] : shapes) {
    const Arrays arrays{R, K, N};
    std::vector<float> pre = random_array<float>(R * K, 5);
    std::vector<float> dx(static_cast<size_t>(R * K), 9.0f), reference(dx);
    const GemmDescription g =
        describe_gemm({GemmOp::backward_input, DType::f32, R, K, N, false, true}, true);
    EXPECT_EQ(g.epilogue, GemmEpilogue::gelu_gradient);
    evaluate(g, arrays[g.a], arrays[g.b], dx, nullptr, &pre);
    ref_kernels<float>().linear_gelu_backward_input(
        *queue,
        {{reference.data(), arrays.dy.data(), arrays.weight.data(), R, K, N, {}}, pre.data()});
    expect_close(dx, reference, 1e-5, 4 * ulp_of<float>(), "dx");
  }
}

TEST_F(GemmDescriptions, BackwardInput) {
  for (const auto& [R, K, N] : shapes) {
    const Arrays arrays{R, K, N};
    std::vector<float> dx = random_array<float>(R * K, 5), reference(dx);
    const GemmDescription g = describe_gemm({GemmOp::backward_input, DType::f32, R, K, N}, false);
    evaluate(g, arrays[g.a], arrays[g.b], dx, nullptr);
    ref_kernels<float>().linear_backward_input(
        *queue, {reference.data(), arrays.dy.data(), arrays.weight.data(), R, K, N, {}});
    expect_close(dx, reference, 1e-6, ulp_of<float>(), "dx");
  }
}

// The library assigns the gradient of a bias where the kernel adds to it: started from zero, they
// are the same.
TEST_F(GemmDescriptions, BackwardWeight) {
  for (const auto& [R, K, N] : shapes)
    for (const bool fused : {false, true}) {
      const Arrays arrays{R, K, N};
      std::vector<float> dweight = random_array<float>(N * K, 6), reference(dweight);
      std::vector<float> dbias(static_cast<size_t>(N), fused ? 9.0f : 0.0f);
      std::vector<float> dbias_reference(static_cast<size_t>(N));
      const GemmDescription g =
          describe_gemm({GemmOp::backward_weight, DType::f32, R, K, N, true}, fused);
      EXPECT_EQ(g.epilogue, fused ? GemmEpilogue::bias_gradient : GemmEpilogue::none);
      evaluate(g, arrays[g.a], arrays[g.b], dweight, &dbias);
      ref_kernels<float>().linear_backward_weight(*queue, {reference.data(),
                                                           dbias_reference.data(),
                                                           arrays.dy.data(),
                                                           arrays.x.data(),
                                                           R,
                                                           K,
                                                           N,
                                                           {}});
      expect_close(dweight, reference, 1e-6, ulp_of<float>(), "dweight");
      if (fused) expect_close(dbias, dbias_reference, 1e-6, ulp_of<float>(), "dbias");
    }
}

// GEMMs in fp8 sum along consecutive elements of both factors: W^T for dx, x^T and dy^T, padded
// with zeros, for dW. The types are those that the library multiplies.
TEST_F(GemmDescriptions, Fp8FactorsLieAlongTheSum) {
  const auto transposed = [](const std::vector<float>& x, int64_t rows, int64_t columns) {
    const int64_t pitch = padded_rows(rows);
    std::vector<float> y(static_cast<size_t>(pitch * columns));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        y[static_cast<size_t>(c * pitch + r)] = x[static_cast<size_t>(r * columns + c)];
    return y;
  };
  constexpr DType e4m3 = DType::fp8_e4m3, e5m2 = DType::fp8_e5m2;
  for (const auto& [R, K, N] : {std::array<int64_t, 3>{5, 16, 32}, {16, 48, 16}, {33, 16, 16}}) {
    const Arrays arrays{R, K, N};
    const GemmDescription y = describe_gemm({GemmOp::forward, e4m3, R, K, N, true}, false);
    const GemmDescription dx = describe_gemm({GemmOp::backward_input, e5m2, R, K, N, false}, false);
    const GemmDescription dw =
        describe_gemm({GemmOp::backward_weight, e5m2, R, K, N, false}, false);
    for (const GemmDescription& g : {y, dx, dw}) {
      EXPECT_TRUE(g.transpose_a);
      EXPECT_FALSE(g.transpose_b);
      EXPECT_EQ(g.in, e4m3);
      EXPECT_EQ(g.k % 16, 0);
      EXPECT_EQ(g.lda % 16, 0);
      EXPECT_EQ(g.ldb % 16, 0);
    }
    EXPECT_EQ(y.in_b, e4m3);
    EXPECT_EQ(dx.in_b, e5m2);
    EXPECT_EQ(dw.in_b, e5m2);
    EXPECT_EQ(y.out, DType::bf16);
    EXPECT_EQ(dx.out, DType::bf16);
    EXPECT_EQ(dw.out, DType::f32);

    std::vector<float> result(static_cast<size_t>(R * K)), reference(result);
    evaluate(dx, transposed(arrays.weight, N, K), arrays.dy, result, nullptr);
    ref_kernels<float>().linear_backward_input(
        *queue, {reference.data(), arrays.dy.data(), arrays.weight.data(), R, K, N, {}});
    expect_close(result, reference, 1e-6, ulp_of<float>(), "dx");

    result.assign(static_cast<size_t>(N * K), 0.0f);
    reference = result;
    evaluate(dw, transposed(arrays.x, R, K), transposed(arrays.dy, R, N), result, nullptr);
    ref_kernels<float>().linear_backward_weight(
        *queue, {reference.data(), nullptr, arrays.dy.data(), arrays.x.data(), R, K, N, {}});
    expect_close(result, reference, 1e-6, ulp_of<float>(), "dW");
  }
}

TEST_F(GemmDescriptions, GradientsOfWeightsAreF32) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    const GemmDescription g = describe_gemm({GemmOp::backward_weight, type, 2, 3, 4, false}, false);
    EXPECT_EQ(g.in, type);
    EXPECT_EQ(g.out, DType::f32);
    EXPECT_TRUE(g.accumulate);
    EXPECT_EQ(describe_gemm({GemmOp::forward, type, 2, 3, 4, false}, false).out, type);
  }
}

// A layer has four products forward, four for inputs and four for weights, the head three; the last
// micro-batch may be smaller.
TEST(GemmsOfPlan, AreThoseOfTheModel) {
  SmallModel m;
  m.compute = "bf16";
  m.device = "host";
  m.micro_batch = 2;
  m.global_batch = 4;
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  const std::vector<GemmKey> keys = gemms_of(plan);
  const int64_t R = 8, C = 8;
  const auto has = [&](const GemmKey& key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  EXPECT_TRUE(has({GemmOp::forward, DType::bf16, R, C, 3 * C, true}));
  EXPECT_TRUE(has({GemmOp::forward, DType::bf16, R, 4 * C, C, true}));
  EXPECT_TRUE(has({GemmOp::backward_weight, DType::bf16, R, C, 4 * C, true}));
  EXPECT_TRUE(has({GemmOp::forward, DType::bf16, R, C, plan.shape.V, false}));
  EXPECT_EQ(keys.size(), 15u);
  m.global_batch = 5;
  EXPECT_EQ(gemms_of(make_plan(resolved_config(m), 1, 0)).size(), 30u);
  m.global_batch = 4;
  m.device = "cuda";
  const std::vector<GemmKey> fused = gemms_of(make_plan(resolved_config(m), 1, 0));
  EXPECT_EQ(fused.size(), 15u);
  int64_t with_gelu = 0;
  for (const GemmKey& key : fused) {
    with_gelu += key.gelu ? 1 : 0;
    EXPECT_EQ(GemmKey::parse(text_of(key)), key);
  }
  EXPECT_EQ(with_gelu, 2);
}

}  // namespace gptbench::test
