// The timed search for GEMM algorithms, and the reuse of those of an earlier one.
#include "base/error.h"
#include "base/units.h"
#include "cuda/gemm_cublaslt.h"
#include "cuda/kernels.h"
#include "gpu_test.h"

namespace gptbench::test {
namespace {

using A = bfloat16;
constexpr int64_t R = 96, K = 128, N = 64;

class CudaGemmSearch : public ::testing::Test, public Devices {
 protected:
  std::unique_ptr<Queue> gpu_queue = gpu().make_queue("test");
  const KernelTable& kernels = cuda_kernels(ComputeType::bf16);
  std::vector<GemmKey> keys = {
      {GemmOp::forward, DType::bf16, R, K, N, true},
      {GemmOp::forward, DType::bf16, R, K, N, true, true},
      {GemmOp::forward, DType::bf16, 33, 17, 65, true},
      {GemmOp::forward, DType::f16, R, K, N},
      {GemmOp::forward, DType::f32, R, K, N},
      {GemmOp::forward, DType::fp8_e4m3, R, K, N, true},
      {GemmOp::backward_input, DType::bf16, R, K, N},
      {GemmOp::backward_input, DType::bf16, R, K, N, false, true},
      {GemmOp::backward_input, DType::fp8_e5m2, R, K, N},
      {GemmOp::backward_weight, DType::bf16, R, K, N, true},
      {GemmOp::backward_weight, DType::bf16, 33, 17, 65, true},
      {GemmOp::backward_weight, DType::fp8_e5m2, R + 1, K, N},
  };

  // dW and dbias of one call.
  std::vector<float> gradients(CublasLtGemm& gemms) {
    const OnDevice<A> dy(*gpu_queue, random_array<A>(R * N, 1)),
        x(*gpu_queue, random_array<A>(R * K, 2));
    const OnDevice<float> dw(*gpu_queue, random_array<float>(N * K, 3)),
        dbias(*gpu_queue, random_array<float>(N, 4));
    const OnDevice<char> scratch(*gpu_queue, std::vector<char>(gemm_workspace_bytes));
    gemms.backward_weight(*gpu_queue, DType::bf16,
                          {dw.data(),
                           dbias.data(),
                           dy.data(),
                           x.data(),
                           R,
                           K,
                           N,
                           {scratch.data(), gemm_workspace_bytes}},
                          kernels);
    std::vector<float> all = dw.read();
    const std::vector<float> sums = dbias.read();
    all.insert(all.end(), sums.begin(), sums.end());
    return all;
  }
};

}  // namespace

TEST_F(CudaGemmSearch, SelectionsAreTimedAndKept) {
  CublasLtGemm measured(false), reading(false);
  measured.search(keys, gemm_workspace_bytes, *gpu_queue, kernels);
  const GemmSelections& selections = measured.selections();
  ASSERT_EQ(selections.by_key.size(), keys.size());
  for (const auto& [key, selection] : selections.by_key) {
    EXPECT_GT(selection.tried, 0) << text_of(key);
    EXPECT_GT(selection.time_us, 0.0) << text_of(key);
  }
  reading.selections().add(selections.text());
  EXPECT_EQ(reading.selections().text(), selections.text());
  EXPECT_EQ(gradients(reading), gradients(measured));
}

// The library refuses it, or computes the GEMM with it all the same: its word decides, and nothing
// but its own algorithms is shown to it.
TEST_F(CudaGemmSearch, AnAlgorithmOfAnotherGemmIsRefusedOrWorks) {
  CublasLtGemm gemms(false), expected(false);
  const GemmKey key{GemmOp::backward_weight, DType::bf16, R, K, N, true};
  gemms.search({{GemmOp::forward, DType::f32, R, K, N}}, gemm_workspace_bytes, *gpu_queue, kernels);
  gemms.selections().by_key[key] = gemms.selections().by_key.begin()->second;
  std::vector<float> all;
  try {
    all = gradients(gemms);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("refuses the algorithm given for " + text_of(key)),
              std::string::npos)
        << error.what();
    return;
  }
  // Sums of R products of bf16 numbers, exact in f32, in another order.
  expect_close(all, gradients(expected), R * R * eps32 * 16.0, 0.0, "gradients");
}

TEST_F(CudaGemmSearch, NoMemoryForItsArraysIsNoError) {
  CublasLtGemm gemms(false);
  const int64_t large = int64_t{1} << 19;
  gemms.search({{GemmOp::forward, DType::f32, large, large, large}}, gemm_workspace_bytes,
               *gpu_queue, kernels);
  EXPECT_TRUE(gemms.selections().by_key.empty());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace gptbench::test
