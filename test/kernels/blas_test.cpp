#include "device/host/gemm_blas.h"
#include "kernel_test.h"

namespace gptbench::test {

TEST(Blas, ComputesEveryF32Gemm) {
  EXPECT_FALSE(blas_name().empty());
  for (const int64_t m : {1, 4096})
    EXPECT_EQ(gemm_implementation({DType::f32,
                                   DType::f32,
                                   m,
                                   512,
                                   512,
                                   {nullptr, 512, false},
                                   {nullptr, 512, true},
                                   nullptr,
                                   512,
                                   nullptr,
                                   false}),
              "sgemm of " + blas_name());
}

// Sizes beyond its integers are left to oneDNN.
TEST(Blas, LeavesOutWhatItsIntegersCannotCount) {
  const int64_t large = int64_t{1} << 31;
  EXPECT_FALSE(run_blas({DType::f32,
                         DType::f32,
                         1,
                         1,
                         1,
                         {nullptr, large, false},
                         {nullptr, 1, false},
                         nullptr,
                         1,
                         nullptr,
                         false},
                        0.0f));
}

}  // namespace gptbench::test
