// What the emulated cuBLASLt computes, against loops in double over the same bytes. A sum of k
// products in f32, in any order and in parts, is off by at most (k + 2) 2^-23 of the sum of
// magnitudes (Higham, section 3.1), and is rounded once to D's type.
#include <set>

#include "lt_product.h"

namespace gptbench::test {
namespace {

constexpr Shape shapes[] = {{8, 8, 16}, {33, 5, 70}, {40, 24, 136}, {64, 9, 96}};

double bound_of(const LtProduct& p, double sum, double magnitude) {
  return static_cast<double>(p.s.k + 2) * 0x1p-23 * magnitude +
         1.01 * rounding_of(p.d_type) * std::abs(sum);
}

std::vector<cublasLtMatmulHeuristicResult_t> usable(LtProduct& p) {
  std::vector<cublasLtMatmulHeuristicResult_t> found, all;
  EXPECT_EQ(p.propose(all), CUBLAS_STATUS_SUCCESS);
  for (const auto& each : all)
    if (each.state == CUBLAS_STATUS_SUCCESS) found.push_back(each);
  return found;
}

}  // namespace

// Every layout, sums in every way; what lies between columns stays.
TEST(EmulatedCublasLt, ProductsOfEveryLayout) {
  const DeviceBytes workspace(std::vector<char>(1 << 20));
  size_t accepted = 0, refused = 0;
  for (Shape shape : shapes)
    for (int variant = 0; variant < 24; ++variant) {
      shape.transpose_a = (variant & 1) != 0;
      shape.transpose_b = (variant & 2) != 0;
      shape.padding = (variant & 4) != 0 ? 8 : 0;
      const cudaDataType_t in = variant < 8 ? CUDA_R_32F : variant < 16 ? CUDA_R_16BF : CUDA_R_16F;
      const cudaDataType_t out = shape.n % 2 == 0 ? in : CUDA_R_32F;
      const float beta = variant % 3 == 0 ? 1.0f : 0.0f;
      LtProduct p(shape, in, out);
      p.describe();
      p.prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
               static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
      const DeviceBytes a(in, p.a_count(), 1), b(in, p.b_count(), 2);
      DeviceBytes d(out, p.d_count(), 3);
      const auto as = a.read(), bs = b.read(), before = d.read();
      for (const auto& algorithm : usable(p)) {
        d.write(before);
        const cublasStatus_t status =
            p.run(a.data(), b.data(), d.data(), d.data(), &algorithm.algo, beta, workspace.data());
        ++(status == CUBLAS_STATUS_SUCCESS ? accepted : refused);
        if (status != CUBLAS_STATUS_SUCCESS) continue;
        const auto ds = d.read();
        for (int64_t j = 0; j < shape.n; ++j)
          for (int64_t i = 0; i < p.ldd(); ++i) {
            const int64_t at = i + j * p.ldd();
            const double c = value_of(out, before, at), seen = value_of(out, ds, at);
            if (i >= shape.m) {
              ASSERT_EQ(seen, c);
              continue;
            }
            double magnitude = 0.0;
            const double sum = p.sum(as, bs, i, j, magnitude) + static_cast<double>(beta) * c;
            ASSERT_LE(std::abs(seen - sum), bound_of(p, sum, magnitude + std::abs(c)))
                << i << " " << j;
          }
      }
    }
  EXPECT_GT(accepted, 2 * refused);
  EXPECT_GT(refused, 0u);  // "doesn't fully guarantee algo will run"
}

// Parts rounded to D's type before they are added, which the preference can exclude.
TEST(EmulatedCublasLt, PartsInTheTypeOfTheResultAreCoarser) {
  LtProduct p({64, 16, 256}, CUDA_R_16BF, CUDA_R_16BF);
  p.describe();
  const DeviceBytes a(p.a_type, p.a_count(), 1), b(p.b_type, p.b_count(), 2);
  const DeviceBytes workspace(std::vector<char>(p.workspace_bytes));
  const DeviceBytes d(p.d_type, p.d_count(), 3);
  const auto as = a.read(), bs = b.read();
  std::set<bool> coarse;
  for (const auto& algorithm : usable(p)) {
    if (p.run(a.data(), b.data(), d.data(), d.data(), &algorithm.algo, 0.0f, workspace.data()) !=
        CUBLAS_STATUS_SUCCESS)
      continue;
    const auto ds = d.read();
    bool within = true;
    for (int64_t j = 0; j < p.s.n; ++j)
      for (int64_t i = 0; i < p.s.m; ++i) {
        double magnitude = 0.0;
        const double sum = p.sum(as, bs, i, j, magnitude);
        const double off = std::abs(value_of(p.d_type, ds, i + j * p.ldd()) - sum);
        within = within && off <= bound_of(p, sum, magnitude);
        ASSERT_LE(off, bound_of(p, sum, magnitude) + 3 * rounding_of(p.d_type) * magnitude);
      }
    coarse.insert(!within);
  }
  EXPECT_EQ(coarse, (std::set<bool>{false, true}));
}

TEST(EmulatedCublasLt, Epilogues) {
  for (const cudaDataType_t type : {CUDA_R_32F, CUDA_R_16BF})
    for (const cublasLtEpilogue_t epilogue :
         {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS,
          CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
          CUBLASLT_EPILOGUE_DGELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}) {
      SCOPED_TRACE(testing::Message() << type << " " << epilogue);
      LtProduct p({48, 24, 40, true, false}, type, type);
      p.describe();
      const int64_t m = p.s.m, n = p.s.n, ldaux = m + 8;
      const DeviceBytes a(type, p.a_count(), 1), b(type, p.b_count(), 2), d(type, p.d_count(), 3),
          aux(type, ldaux * n, 4), bias(type, m, 5);
      const auto as = a.read(), bs = b.read(), xs = aux.read(), biases = bias.read();
      p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
      p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, ldaux);
      p.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.data());
      p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.data());
      if (epilogue == CUBLASLT_EPILOGUE_DGELU) {  // has none
        EXPECT_EQ(p.run(a.data(), b.data(), nullptr, d.data(), nullptr),
                  CUBLAS_STATUS_INVALID_VALUE);
        p.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(nullptr));
      }
      ASSERT_EQ(p.run(a.data(), b.data(), nullptr, d.data(), nullptr), CUBLAS_STATUS_SUCCESS);
      const auto ds = d.read(), aux_after = aux.read(), bias_after = bias.read();

      const bool adds = (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
      const bool forward = (epilogue & CUBLASLT_EPILOGUE_GELU) != 0;
      const bool backward = (epilogue & 64) != 0;
      const double rounding = 1.01 * rounding_of(type), scale = std::sqrt(2.0 / std::acos(-1.0));
      std::vector<double> row_sums(static_cast<size_t>(m)), row_bounds(static_cast<size_t>(m));
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) {
          double magnitude = 0.0;
          double value = p.sum(as, bs, i, j, magnitude);
          if (adds) value += value_of(type, biases, i);
          // GELU and its derivative are formed in f32, to a few units; both slopes are below 1.13.
          double bound = 1.13 * (static_cast<double>(p.s.k + 12) * 0x1p-23 * (magnitude + 1.0));
          if ((epilogue & 128) != 0 && forward) {
            ASSERT_LE(std::abs(value_of(type, aux_after, i + j * ldaux) - value),
                      bound + rounding * std::abs(value));
          }
          const double x = backward ? value_of(type, xs, i + j * ldaux) : value;
          const double t = std::tanh(scale * (x + 0.044715 * x * x * x));
          if (forward) value = 0.5 * x * (1.0 + t);
          if (backward)
            value *=
                0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * scale * (1.0 + 3.0 * 0.044715 * x * x);
          ASSERT_LE(std::abs(value_of(type, ds, i + j * p.ldd()) - value),
                    bound + rounding * std::abs(value))
              << i << " " << j;
          row_sums[static_cast<size_t>(i)] += value;
          row_bounds[static_cast<size_t>(i)] +=
              bound + static_cast<double>(n) * 0x1p-23 * std::abs(value);
        }
      for (size_t i = 0; epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD && i < row_sums.size(); ++i)
        ASSERT_LE(std::abs(value_of(type, bias_after, static_cast<int64_t>(i)) - row_sums[i]),
                  row_bounds[i] + rounding * std::abs(row_sums[i]));
      const bool of_a = epilogue == CUBLASLT_EPILOGUE_BGRADA;
      if (!of_a && epilogue != CUBLASLT_EPILOGUE_BGRADB) continue;
      for (int64_t i = 0; i < (of_a ? m : n); ++i) {
        double sum = 0.0, magnitude = 0.0;
        for (int64_t l = 0; l < p.s.k; ++l) {
          const double each =
              of_a ? value_of(type, as, l + i * p.lda()) : value_of(type, bs, l + i * p.ldb());
          sum += each;
          magnitude += std::abs(each);
        }
        ASSERT_LE(std::abs(value_of(type, bias_after, i) - sum),
                  static_cast<double>(p.s.k) * 0x1p-23 * magnitude + rounding * std::abs(sum));
      }
    }
}

// Factors are rounded to 10 bits of fraction: 1 + 2^-11 to 1 + 2^-10, 1 + 2^-12 to 1.
TEST(EmulatedCublasLt, Tf32RoundsFactors) {
  for (const bool tf32 : {false, true}) {
    LtProduct p({8, 8, 1, false, false}, CUDA_R_32F, CUDA_R_32F);
    if (tf32) p.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    p.describe();
    const DeviceBytes a(encoded(CUDA_R_32F, std::vector<float>(8, 1.0f + 0x1p-11f)));
    const DeviceBytes b(encoded(CUDA_R_32F, std::vector<float>(8, 1.0f + 0x1p-12f)));
    const DeviceBytes d(CUDA_R_32F, 64, 1);
    ASSERT_EQ(p.run(a.data(), b.data(), nullptr, d.data(), nullptr), CUBLAS_STATUS_SUCCESS);
    const double exact = (1.0 + 0x1p-11) * (1.0 + 0x1p-12);
    EXPECT_EQ(value_of(CUDA_R_32F, d.read(), 9),
              tf32 ? 1.0 + 0x1p-10 : static_cast<double>(static_cast<float>(exact)));
  }
}

// Scales are read when the product runs; terms are cut off 13 bits below the largest of 32.
TEST(EmulatedCublasLt, Fp8) {
  for (const cudaDataType_t other : {CUDA_R_8F_E4M3, CUDA_R_8F_E5M2})
    for (const cudaDataType_t out : {CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F})
      for (const int8_t fast : {int8_t{0}, int8_t{1}}) {
        LtProduct p({32, 5, 272, true, false}, CUDA_R_8F_E4M3, out);
        p.b_type = other;
        p.describe();
        p.set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast);
        const DeviceBytes a(p.a_type, p.a_count(), 1), b(p.b_type, p.b_count(), 2),
            d(out, p.d_count(), 3);
        DeviceBytes scales(encoded(CUDA_R_32F, {1.0f, 0.0f, 0.0f, 0.0f, 1.0f}));
        p.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales.data());
        p.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales.data() + 4);
        EXPECT_EQ(p.run(a.data(), b.data(), nullptr, d.data(), nullptr),
                  CUBLAS_STATUS_NOT_SUPPORTED);
        p.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales.data() + 16);
        scales.write(encoded(CUDA_R_32F, {0.25f, 0.0f, 0.0f, 0.0f, 2.0f}));
        ASSERT_EQ(p.run(a.data(), b.data(), nullptr, d.data(), nullptr), CUBLAS_STATUS_SUCCESS);
        const auto as = a.read(), bs = b.read(), ds = d.read();
        for (int64_t j = 0; j < p.s.n; ++j)
          for (int64_t i = 0; i < p.s.m; ++i) {
            double magnitude = 0.0;
            const double sum = 0.5 * p.sum(as, bs, i, j, magnitude);
            // 33 terms an instruction, each off by less than 2^-13 of a partial sum's magnitude.
            const double instructions = std::ceil(static_cast<double>(p.s.k) / 32.0);
            ASSERT_LE(std::abs(value_of(out, ds, i + j * p.ldd()) - sum),
                      instructions * 33.0 * 0x1p-13 * 0.5 * magnitude +
                          1.01 * rounding_of(out) * std::abs(sum));
          }
      }
}

// Beta 0: C is not read. What is no number stays none, in fp8 too.
TEST(EmulatedCublasLt, NotANumber) {
  for (const cudaDataType_t in : {CUDA_R_32F, CUDA_R_8F_E4M3}) {
    LtProduct p({16, 16, 32, true, false}, in, CUDA_R_32F);
    p.describe();
    std::vector<float> values = numbers(p.a_count(), 1);
    values[3] = NAN;
    const DeviceBytes a(encoded(in, values)), b(in, p.b_count(), 2);
    const DeviceBytes d(encoded(CUDA_R_32F, std::vector<float>(256, NAN)));
    ASSERT_EQ(p.run(a.data(), b.data(), d.data(), d.data(), nullptr), CUBLAS_STATUS_SUCCESS);
    const auto ds = d.read();
    for (int64_t i = 0; i < 256; ++i)
      ASSERT_EQ(std::isnan(value_of(CUDA_R_32F, ds, i)), i % 16 == 0) << i;
  }
}

}  // namespace gptbench::test
