// The emulation itself: what it computes, and that it ends what would hang or race on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
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
std::string failure_of(const char* name, Kernel kernel, int threads, size_t shared_bytes = 0) {
  try {
    launch(name, kernel, dim3{2, 1, 1}, threads, shared_bytes, nullptr);
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

__global__ void writes_behind_kernel() {
  GPTBENCH_DYNAMIC_SHARED(int, values);
  values[threadIdx.x] = 1;
}

__global__ void unaligned_kernel() {
  GPTBENCH_DYNAMIC_SHARED(unsigned char, bytes);
  *GPTBENCH_VECTOR(uint4, bytes + 8) = {};
}

void expect(const std::string& what, const std::string& part) {
  EXPECT_NE(what.find(part), std::string::npos) << what;
}

TEST(Emulation, EndsWhatWouldHang) {
  expect(failure_of(GPTBENCH_KERNEL(leaves_early_kernel), 64), "ends while others wait");
  expect(failure_of(GPTBENCH_KERNEL(leaves_early_kernel), 64), "leaves_early_kernel: block (0, 0");
  expect(failure_of(GPTBENCH_KERNEL(two_barriers_kernel), 64), "threads wait at");
  expect(failure_of(GPTBENCH_KERNEL(lane_missing_kernel), 32), "lane");
  expect(failure_of(GPTBENCH_KERNEL(barrier_against_shuffle_kernel), 32), "wait for ever");
  expect(failure_of(GPTBENCH_KERNEL(never_waits_kernel), 1), "never waited for");
  expect(failure_of(GPTBENCH_KERNEL(leaves_early_kernel), 2048), "2048 threads");
  EXPECT_EQ(failure_of(GPTBENCH_KERNEL(leaves_early_kernel), 32), "");  // and goes on afterwards
}

TEST(Emulation, EndsFaultsOfMemory) {
  expect(failure_of(GPTBENCH_KERNEL(unaligned_kernel), 1, 24), "16 bytes at an address");
  EXPECT_EQ(failure_of(GPTBENCH_KERNEL(writes_behind_kernel), 33, 33 * sizeof(int)), "");
#if !defined(__SANITIZE_ADDRESS__)  // which ends the test
  expect(failure_of(GPTBENCH_KERNEL(writes_behind_kernel), 33, 32 * sizeof(int)),
         "writes behind its 128 bytes");
#endif
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

// Whether each of the `of_block` numbers of a block is that of block 0.
std::vector<bool> blocks_equal_the_first(const std::vector<int>& out, size_t of_block) {
  std::vector<bool> equal;
  for (size_t at = 0; at < out.size(); at += of_block)
    equal.push_back(std::equal(out.begin(), out.begin() + of_block, out.begin() + at));
  return equal;
}

// In two rounds, the warps exchange numbers through shared memory. Without the second barrier of a
// round a warp that runs ahead writes the next round's number before the other one reads this
// round's; a shuffle lies in between.
template <bool second_barrier>
__global__ void two_rounds_kernel(int* out) {
  GPTBENCH_DYNAMIC_SHARED(int, of_warps);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (unsigned round = 0; round < 2; ++round) {
    const int number = __shfl_sync(0xffffffffu, static_cast<int>(10 * round) + warp, 0);
    if (lane == 0) of_warps[warp] = number;
    __syncthreads();
    out[(2 * blockIdx.x + round) * blockDim.x + threadIdx.x] = of_warps[1 - warp];
    if (second_barrier) __syncthreads();
  }
}

TEST(Emulation, AMissingSecondBarrierShows) {
  std::vector<int> out(3 * 2 * 64);
  launch(GPTBENCH_KERNEL(two_rounds_kernel<true>), dim3{3, 1, 1}, 64, 2 * sizeof(int), nullptr,
         out.data());
  EXPECT_EQ(blocks_equal_the_first(out, 128), (std::vector<bool>{true, true, true}));
  launch(GPTBENCH_KERNEL(two_rounds_kernel<false>), dim3{3, 1, 1}, 64, 2 * sizeof(int), nullptr,
         out.data());
  EXPECT_EQ(blocks_equal_the_first(out, 128), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[128], 11);           // the highest warp ahead: the lowest one reads too late
  EXPECT_EQ(out[2 * 128 + 63], 10);  // and the other way round
}

// Three tiles of 64 numbers through two buffers. A prefetch issued before the barrier overwrites
// the buffer that a slower warp still reads.
template <bool after_barrier>
__global__ void prefetch_kernel(int* out, const int* tiles) {
  GPTBENCH_DYNAMIC_SHARED(int, buffers);
  const auto prefetch = [&](unsigned tile) {
    emulation::copy_later(buffers + tile % 2 * 64 + threadIdx.x, tiles + tile * 64 + threadIdx.x,
                          sizeof(int), 0);
    emulation::commit_copies();
  };
  prefetch(0);
  for (unsigned tile = 0; tile < 3; ++tile) {
    emulation::wait_for_copies(0);
    if (!after_barrier && tile < 2) prefetch(tile + 1);
    __syncthreads();
    if (after_barrier && tile < 2) prefetch(tile + 1);
    out[(3 * blockIdx.x + tile) * 64 + threadIdx.x] = buffers[tile % 2 * 64 + (threadIdx.x ^ 32)];
  }
}

TEST(Emulation, APrefetchBeforeTheBarrierShows) {
  std::vector<int> tiles(3 * 64), out(3 * tiles.size());
  for (size_t i = 0; i < tiles.size(); ++i) tiles[i] = static_cast<int>(i);
  launch(GPTBENCH_KERNEL(prefetch_kernel<true>), dim3{3, 1, 1}, 64, 128 * sizeof(int), nullptr,
         out.data(), tiles.data());
  EXPECT_EQ(blocks_equal_the_first(out, tiles.size()), (std::vector<bool>{true, true, true}));
  launch(GPTBENCH_KERNEL(prefetch_kernel<false>), dim3{3, 1, 1}, 64, 128 * sizeof(int), nullptr,
         out.data(), tiles.data());
  EXPECT_EQ(blocks_equal_the_first(out, tiles.size()), (std::vector<bool>{true, false, false}));
}

// Reads a copy that it has not waited for.
__global__ void missing_wait_kernel(int* out, const int* from) {
  GPTBENCH_DYNAMIC_SHARED(int, copied);
  emulation::copy_later(copied, from, sizeof(int), 0);
  emulation::commit_copies();
  out[blockIdx.x] = *copied;
  emulation::wait_for_copies(0);
}

TEST(Emulation, AMissingWaitShows) {
  const int from = 7;
  std::vector<int> out(2);
  launch(GPTBENCH_KERNEL(missing_wait_kernel), dim3{2, 1, 1}, 1, sizeof(int), nullptr, out.data(),
         &from);
  EXPECT_NE(out[0], 7);
  EXPECT_EQ(out[1], 7);
}

}  // namespace
}  // namespace gptbench::test
