// GEMMs beside an all-reduce: what is measured, and that nothing is where there is no room. Ranks
// that differ measure together all the same.
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/measure_kernels.h"
#include "calibrate/measure_messages.h"
#include "deck/deck.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

// Ample, however busy the machine is: each measurement takes a part of a second.
constexpr double time_s = 1e5;

class Overlap : public ::testing::Test {
 protected:
  // first: of the ranks that exchange messages.
  LeftOut measure(int64_t room_bytes, int64_t first = 0) {
    Config config = resolve(parse_deck("deck", "&run device = 'host' /", {}), world_.size());
    config.run.comm = CommLibrary::mpi;
    const MessageRanks ranks{1, world_.size() - first, world_.rank() - first};
    return measure_overlap(world_, *device_, config, ranks, ComputeType::fp32, room_bytes, time_s,
                           result_);
  }

  MpiWorld world_{nullptr, nullptr};
  std::unique_ptr<Device> device_ = make_host_device(DeviceKind::host);
  Calibration result_;
};

TEST_F(Overlap, GemmMessageAndBoth) {
  EXPECT_EQ(measure(int64_t{1} << 30).items, 0);
  if (world_.rank() != 0) {
    EXPECT_TRUE(result_.empty());
    return;
  }
  ASSERT_EQ(result_.kernels.size(), 3u);
  const KernelRate &gemm = result_.kernels[0], &message = result_.kernels[1],
                   &both = result_.kernels[2];
  EXPECT_EQ(gemm.kernel, gemm_alone);
  EXPECT_EQ(message.kernel, message_alone);
  EXPECT_EQ(both.kernel, gemms_beside_message);
  for (const KernelRate& rate : result_.kernels) EXPECT_GT(rate.time_s, 0.0) << rate.kernel;
  EXPECT_EQ(gemm.flops, 2.0 * 256.0 * 768.0 * 768.0);
  EXPECT_EQ(message.bytes, 16777216.0);
  EXPECT_EQ(both.bytes, message.bytes);
  // So many GEMMs that they take at least twice the time of the message.
  const double gemms = both.flops / gemm.flops;
  EXPECT_EQ(gemms, std::round(gemms));
  EXPECT_GE(gemms * gemm.time_s, 2.0 * message.time_s);
}

// Beyond the part that is looked at in one go, and neither the first nor the last.
TEST_F(Overlap, EveryElementOfAMessageIsLookedAt) {
  const std::unique_ptr<Queue> queue = device_->make_queue("test");
  std::vector<float> array(3 << 20, 2.0f);
  const auto count = static_cast<int64_t>(array.size()) - 7;
  EXPECT_EQ(count_wrong(*device_, *queue, array.data(), count, 2.0f), 0);
  for (const size_t wrong : {size_t{1}, size_t{1} << 20, (size_t{2} << 20) + 5})
    array[wrong] = 3.0f;
  array[array.size() - 7] = 3.0f;  // behind the end
  EXPECT_EQ(count_wrong(*device_, *queue, array.data(), count, 2.0f), 3);
  EXPECT_EQ(count_wrong(*device_, *queue, array.data(), count, 3.0f), count - 3);
}

// As on nodes with caches of different sizes: rank 0 has them prepared, the other rank does not.
TEST_F(Overlap, OneRankAloneMayPrepareItsCalls) {
  const std::unique_ptr<Queue> queue = device_->make_queue("test");
  TimeShare share(world_, 1e-3, 1);
  const auto prepare = world_.rank() == 0 ? [] {} : std::function<void()>();
  EXPECT_TRUE(share.time(
      *queue, [] {}, false, prepare));
  EXPECT_EQ(world_.sum(int64_t{1}), world_.size());
}

// Scratch of attention grows with the threads: rank 0 is given more than there is room for.
TEST_F(Overlap, WhatHasNoRoomOnOneRankIsLeftOutOnAll) {
  if (world_.rank() == 0) const_cast<DeviceInfo&>(device_->info()).num_threads = 1 << 20;
  KernelBench bench(world_, *device_, int64_t{1} << 26, result_);
  EXPECT_EQ(bench.attention(ComputeType::fp32, {{2, 8, 2, 4}}, time_s).items, 2);
  EXPECT_TRUE(result_.empty());
  EXPECT_EQ(world_.sum(int64_t{1}), world_.size());
}

// Rank 0 exchanges no messages, and has the result.
TEST_F(Overlap, GemmsOfARankThatWaits) {
  EXPECT_EQ(measure(int64_t{1} << 30, /*first=*/1).items, 0);
  EXPECT_EQ(result_.kernels.size(), world_.rank() == 0 ? 3u : 0u);
}

TEST_F(Overlap, NothingWithoutRoom) {
  EXPECT_EQ(measure(int64_t{1} << 20).items, 3);
  EXPECT_TRUE(result_.empty());
}

}  // namespace
}  // namespace gptbench
