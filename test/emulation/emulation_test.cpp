// The emulation itself: what it computes, and that it ends what would hang or race on a GPU.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/kernels/runtime.h"

namespace gptbench::test {
namespace {

using cuda::launch;

__global__ void block_sums_kernel(int* out) {
  GPTBENCH_DYNAMIC_SHARED(int, values);
  values[threadIdx.x] = static_cast<int>(threadIdx.x + blockIdx.x);
  __syncthreads();
  if (threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) sum += values[i];
  out[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

TEST(Emulation, BarriersAndSharedMemory) {
  std::vector<int> out(6, -1);
  launch(GPTBENCH_KERNEL(block_sums_kernel), dim3{3, 2, 1}, 96, 96 * sizeof(int), nullptr,
         out.data());
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 3; ++x)
      EXPECT_EQ(out[static_cast<size_t>(3 * y + x)], 95 * 96 / 2 + 96 * x);
}

__global__ void shuffles_kernel(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int* const mine = out + lane * 7;
  mine[0] = __shfl_xor_sync(0xffffffffu, lane, 5);
  mine[1] = __shfl_down_sync(0xffffffffu, lane, 3u);
  mine[2] = __shfl_down_sync(0xffffffffu, lane, 3u, 8);
  mine[3] = __shfl_up_sync(0xffffffffu, lane, 1u, 16);
  mine[4] = __shfl_sync(0xffffffffu, lane, 9);
  mine[5] = static_cast<int>(__ballot_sync(0xffffffffu, lane % 3 == 0));
  mine[6] = __syncthreads_count(lane < 7);
}

TEST(Emulation, CollectivesOfAWarp) {
  std::vector<int> out(32 * 7);
  launch(GPTBENCH_KERNEL(shuffles_kernel), dim3{1, 1, 1}, 32, 0, nullptr, out.data());
  unsigned thirds = 0;
  for (int lane = 0; lane < 32; lane += 3) thirds |= 1u << lane;
  for (int lane = 0; lane < 32; ++lane) {
    const int* mine = out.data() + lane * 7;
    EXPECT_EQ(mine[0], lane ^ 5);
    EXPECT_EQ(mine[1], lane + 3 < 32 ? lane + 3 : lane);
    EXPECT_EQ(mine[2], lane % 8 + 3 < 8 ? lane + 3 : lane);
    EXPECT_EQ(mine[3], lane % 16 > 0 ? lane - 1 : lane);
    EXPECT_EQ(mine[4], 9);
    EXPECT_EQ(static_cast<unsigned>(mine[5]), thirds);
    EXPECT_EQ(mine[6], 7);
  }
}

template <class Kernel>
std::string failure_of(const char* name, Kernel kernel, int threads) {
  try {
    launch(name, kernel, dim3{2, 1, 1}, threads, 0, nullptr);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

__global__ void leaves_early_kernel() {
  if (threadIdx.x == 40) return;
  __syncthreads();
}

__global__ void two_barriers_kernel() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void lane_missing_kernel() {
  if (threadIdx.x % 32 != 7) __syncwarp();
}

__global__ void barrier_against_shuffle_kernel() {
  if (threadIdx.x == 3)
    __syncthreads();
  else
    __syncwarp();
}

__global__ void never_waits_kernel() {
  static int from = 1, to;
  emulation::copy_later(&to, &from, sizeof to, 0);
}

TEST(Emulation, EndsWhatWouldHang) {
  const auto expect = [](const std::string& what, const std::string& part) {
    EXPECT_NE(what.find(part), std::string::npos) << what;
  };
  expect(failure_of(GPTBENCH_KERNEL(leaves_early_kernel), 64), "ends while others wait");
  expect(failure_of(GPTBENCH_KERNEL(leaves_early_kernel), 64), "leaves_early_kernel: block (0, 0");
  expect(failure_of(GPTBENCH_KERNEL(two_barriers_kernel), 64), "threads wait at");
  expect(failure_of(GPTBENCH_KERNEL(lane_missing_kernel), 32), "lane");
  expect(failure_of(GPTBENCH_KERNEL(barrier_against_shuffle_kernel), 32), "wait for ever");
  expect(failure_of(GPTBENCH_KERNEL(never_waits_kernel), 1), "never waited for");
  expect(failure_of(GPTBENCH_KERNEL(leaves_early_kernel), 2048), "2048 threads");
  EXPECT_EQ(failure_of(GPTBENCH_KERNEL(leaves_early_kernel), 32), "");  // and goes on afterwards
}

// Each thread reads what its neighbour writes, without a barrier in between.
__global__ void missing_barrier_kernel(int* out) {
  GPTBENCH_DYNAMIC_SHARED(int, values);
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[blockIdx.x * blockDim.x + threadIdx.x] = values[(threadIdx.x + 1) % blockDim.x];
}

TEST(Emulation, AMissingBarrierShows) {
  std::vector<int> out(2 * 64);
  launch(GPTBENCH_KERNEL(missing_barrier_kernel), dim3{2, 1, 1}, 64, 64 * sizeof(int), nullptr,
         out.data());
  bool equal = true;
  for (size_t i = 0; i < 64; ++i) equal = equal && out[i] == out[i + 64];
  EXPECT_FALSE(equal);
}

}  // namespace
}  // namespace gptbench::test
