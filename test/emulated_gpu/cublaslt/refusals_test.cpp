// What the emulated cuBLASLt refuses, and what it ends the process for.
#include <functional>
#include <set>

#include "lt_product.h"

namespace gptbench::test {
namespace {

cublasStatus_t answer(LtProduct& p) {
  std::vector<cublasLtMatmulHeuristicResult_t> found;
  return p.propose(found);
}

cublasStatus_t answer(const Shape& shape, cudaDataType_t a, cudaDataType_t b, cudaDataType_t d,
                      cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT) {
  LtProduct p(shape, a, d);
  p.b_type = b;
  p.describe();
  p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.m);
  return answer(p);
}

constexpr Shape tn = {32, 24, 64, true, false};

class EmulatedCublasLtMisuse : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  // A product that is right, up to what `spoil` does.
  static void spoiled(const std::function<void(LtProduct&, char*& a, char*& b, char*& d)>& spoil) {
    LtProduct p({32, 32, 32}, CUDA_R_32F, CUDA_R_32F);
    p.describe();
    const DeviceBytes bytes(std::vector<char>(4 * 4096));
    char *a = bytes.data(), *b = a + 4096, *d = b + 4096;
    std::vector<cublasLtMatmulHeuristicResult_t> found;
    p.propose(found, 1);
    spoil(p, a, b, d);
    p.run(a, b, d, d, found.empty() ? nullptr : &found[0].algo);
  }
};

}  // namespace

TEST(EmulatedCublasLt, AttributesHaveTheLibrarysSizes) {
  LtProduct p(tn, CUDA_R_32F, CUDA_R_32F);
  p.describe();
  EXPECT_EQ(p.set(CUBLASLT_MATMUL_DESC_TRANSA, int8_t{0}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int32_t{8}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(p.set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int32_t{1}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(p.set(static_cast<cublasLtMatmulDescAttributes_t>(9), int64_t{1}),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(p.set(static_cast<cublasLtMatmulDescAttributes_t>(60), int64_t{1}),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(p.prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint32_t{1}),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, nullptr, 4),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_STREQ(cublasLtGetStatusString(answer(tn, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F)),
               "the requested functionality is not supported");
}

TEST(EmulatedCublasLt, Types) {
  const cudaDataType_t f32 = CUDA_R_32F, bf16 = CUDA_R_16BF, f16 = CUDA_R_16F,
                       e4m3 = CUDA_R_8F_E4M3, e5m2 = CUDA_R_8F_E5M2;
  const auto success = CUBLAS_STATUS_SUCCESS, unsupported = CUBLAS_STATUS_NOT_SUPPORTED;
  EXPECT_EQ(answer(tn, f32, f32, f32), success);
  EXPECT_EQ(answer(tn, bf16, bf16, f32), success);
  EXPECT_EQ(answer(tn, bf16, f16, f32), unsupported);
  EXPECT_EQ(answer(tn, f32, f32, bf16), unsupported);
  EXPECT_EQ(answer(tn, bf16, bf16, f16), unsupported);
  EXPECT_EQ(answer(tn, e4m3, e5m2, bf16), success);
  EXPECT_EQ(answer(tn, e5m2, e4m3, f32), success);
  EXPECT_EQ(answer(tn, e5m2, e5m2, bf16), unsupported);
  EXPECT_EQ(answer(tn, e4m3, bf16, bf16), unsupported);
  EXPECT_EQ(answer({32, 24, 64}, e4m3, e4m3, bf16), unsupported);
  EXPECT_EQ(answer({32, 24, 64, true, true}, e4m3, e4m3, bf16), unsupported);
  EXPECT_EQ(answer({32, 24, 72, true, false}, e4m3, e4m3, bf16), unsupported);
  EXPECT_EQ(answer({24, 32, 64, true, false}, e4m3, e4m3, bf16), unsupported);
  EXPECT_EQ(answer({32, 5, 64, true, false}, e4m3, e4m3, bf16), success);
  EXPECT_EQ(answer(tn, e4m3, e4m3, bf16, CUBLASLT_EPILOGUE_BIAS), success);
  EXPECT_EQ(answer(tn, e4m3, e4m3, bf16, CUBLASLT_EPILOGUE_BGRADB), unsupported);
  EXPECT_EQ(answer(tn, e4m3, e4m3, bf16, CUBLASLT_EPILOGUE_GELU_AUX), unsupported);
}

TEST(EmulatedCublasLt, DescriptionsThatContradictThemselves) {
  const auto invalid = CUBLAS_STATUS_INVALID_VALUE;
  {
    LtProduct p(tn, CUDA_R_16BF, CUDA_R_16BF);
    p.describe();
    p.set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N);
    EXPECT_EQ(answer(p), invalid);
    p.set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    EXPECT_EQ(answer(p), CUBLAS_STATUS_SUCCESS);
    p.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, uint64_t{16});  // of fp8 alone
    EXPECT_EQ(answer(p), invalid);
  }
  {
    LtProduct p({36, 8, 8}, CUDA_R_16BF, CUDA_R_16BF);
    p.describe();
    p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
    for (const int64_t ld : {0, 32, 36}) {  // below m; no multiple of 8
      p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, ld);
      EXPECT_EQ(answer(p), invalid) << ld;
    }
    p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t{40});
    EXPECT_EQ(answer(p), CUBLAS_STATUS_SUCCESS);
  }
  LtProduct p({8, 8, 8, false, false, -1}, CUDA_R_32F, CUDA_R_32F);  // ld below the rows
  p.describe();
  EXPECT_EQ(answer(p), invalid);
  std::vector<cublasLtMatmulHeuristicResult_t> found(1);
  int count = 0;
  EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(handle(), p.operation, p.a, p.b, p.d, p.d, p.preference,
                                           0, found.data(), &count),
            invalid);
}

TEST(EmulatedCublasLt, BiasesHaveTheTypeOfTheResult) {
  LtProduct p(tn, CUDA_R_16BF, CUDA_R_32F);
  p.describe();
  p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(answer(p), CUBLAS_STATUS_SUCCESS);
  p.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
  EXPECT_EQ(answer(p), CUBLAS_STATUS_NOT_SUPPORTED);
}

// Smaller promises leave fewer algorithms, and none that cannot take an element.
TEST(EmulatedCublasLt, AlignmentAndWorkspaceChooseAlgorithms) {
  LtProduct p({64, 32, 128}, CUDA_R_16BF, CUDA_R_32F);
  p.describe();
  std::vector<cublasLtMatmulHeuristicResult_t> all, found;
  ASSERT_EQ(p.propose(all), CUBLAS_STATUS_SUCCESS);
  std::set<std::vector<uint64_t>> distinct;
  size_t with_workspace = 0;
  for (const auto& each : all) {
    distinct.insert({each.algo.data, each.algo.data + 8});
    if (each.workspaceSize > 0) ++with_workspace;
  }
  EXPECT_EQ(distinct.size(), all.size());
  EXPECT_GT(with_workspace, 0u);
  const auto promise = [&](uint32_t bytes) {
    for (const auto matrix :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      p.prefer(matrix, bytes);
  };
  promise(4);
  ASSERT_EQ(p.propose(found), CUBLAS_STATUS_SUCCESS);
  EXPECT_LT(found.size(), all.size());
  promise(2);
  EXPECT_EQ(p.propose(found), CUBLAS_STATUS_NOT_SUPPORTED);
  promise(16);
  p.prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{0});
  ASSERT_EQ(p.propose(found), CUBLAS_STATUS_SUCCESS);
  for (const auto& each : found)
    if (each.state == CUBLAS_STATUS_SUCCESS) {
      EXPECT_EQ(each.workspaceSize, 0u);
    }
}

TEST(EmulatedCublasLt, AlgorithmsAreChecked) {
  LtProduct p({64, 32, 128}, CUDA_R_32F, CUDA_R_32F), other({64, 32, 128}, CUDA_R_32F, CUDA_R_32F);
  other.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  p.describe();
  other.describe();
  std::vector<cublasLtMatmulHeuristicResult_t> found;
  ASSERT_EQ(p.propose(found), CUBLAS_STATUS_SUCCESS);
  const DeviceBytes bytes(std::vector<char>(3 * 32768));
  char *const a = bytes.data(), *const b = a + 32768, *const d = b + 32768;
  for (const auto& each : found) {
    cublasLtMatmulHeuristicResult_t result;
    const auto check = [&](const LtProduct& of, const cublasLtMatmulAlgo_t& algo) {
      return cublasLtMatmulAlgoCheck(handle(), of.operation, of.a, of.b, of.d, of.d, &algo,
                                     &result);
    };
    ASSERT_EQ(check(p, each.algo), each.state);
    if (each.state != CUBLAS_STATUS_SUCCESS) continue;
    EXPECT_EQ(result.workspaceSize, each.workspaceSize);
    EXPECT_EQ(check(other, each.algo), CUBLAS_STATUS_INVALID_VALUE);
    cublasLtMatmulAlgo_t damaged = each.algo;
    damaged.data[1] ^= 0xff00ff00u;
    EXPECT_NE(check(p, damaged), CUBLAS_STATUS_SUCCESS);
    if (each.workspaceSize == 0) continue;
    EXPECT_NE(p.run(a, b, d, d, &each.algo), CUBLAS_STATUS_SUCCESS);  // no workspace
  }
}

TEST_F(EmulatedCublasLtMisuse, EndsTheProcess) {
  using P = LtProduct&;
  using C = char*&;
  EXPECT_DEATH(spoiled([](P, C a, C, C) { a = new char[4096]; }), "A .* device memory");
  EXPECT_DEATH(spoiled([](P, C, C, C d) { d += 2 * 4096; }), "D .* device memory");
  EXPECT_DEATH(spoiled([](P, C a, C, C d) { d = a + 2048; }), "D overlaps A");
  EXPECT_DEATH(spoiled([](P, C, C, C d) { d += 16; }), "D .* promised");
  EXPECT_DEATH(spoiled([](P p, C, C, C) { cublasLtMatrixLayoutDestroy(p.a); }), "destroyed");
  EXPECT_DEATH(spoiled([](P p, C a, C b, C d) {
                 std::vector<cublasLtMatmulHeuristicResult_t> found;
                 p.propose(found);
                 p.workspace_bytes = 4096;
                 p.run(a, b, d, d, &found[0].algo, 0.0f, d + 4096 + 16);
               }),
               "workspace .* multiple of 256|workspace .* device memory");
}

}  // namespace gptbench::test
