#include "plan/staging.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "configs.h"

namespace gptbench {
namespace {

Plan plan_of(const SmallModel& m, int64_t rank) {
  return make_plan(resolved_config(m), m.ranks(), rank);
}

}  // namespace

// The data axis of two ranks sums whole gradients (ZeRO 0), or scatters them in two parts (ZeRO 1
// to 3), of which one lies beside.
TEST(Staging, HoldsTheLargestMessageOfAQueue) {
  SmallModel m;
  m.data_parallel = 2;
  for (const int64_t stage : {0, 1, 2, 3}) {
    m.zero_stage = stage;
    const Plan plan = plan_of(m, 1);
    int64_t largest = 0;
    for (const Op& op : plan.ops)
      if (is_message(op.kind) && op.queue == QueueId::data && op.row_count == 0) {
        const int64_t bytes = payload_bytes(op, 0);
        largest = std::max(largest, op.kind == OpKind::reduce_scatter ? bytes * 3 / 2 : bytes);
      }
    EXPECT_GT(largest, 0);
    EXPECT_EQ(staging_bytes(plan, QueueId::data), largest) << stage;
    EXPECT_EQ(staging_bytes(plan, QueueId::compute), 0);
  }
}

// Stage 0 sends activations of a micro-batch of 2 x 4 rows of 8 floats and receives their
// gradients.
TEST(Staging, OfStagesIsAMicroBatch) {
  SmallModel m;
  m.pipeline_parallel = 2;
  const Plan plan = plan_of(m, 0);
  EXPECT_EQ(staging_bytes(plan, QueueId::send_forward), 2 * 4 * 8 * 4);
  EXPECT_EQ(staging_bytes(plan, QueueId::receive_backward), 2 * 4 * 8 * 4);
  EXPECT_EQ(staging_bytes(plan, QueueId::receive_forward), 0);
  int64_t sum = 0;
  for (int q = 0; q < num_queues; ++q) sum += staging_bytes(plan, static_cast<QueueId>(q));
  EXPECT_EQ(staging_bytes(plan), sum);
}

// The input of a checkpointed segment, 2 x 4 rows of 8 floats, is gathered around this rank's part
// of it. The other messages of the queue sum arrays of the same size, or are smaller.
TEST(Staging, GathersTakeTheFullArrayAlone) {
  SmallModel m;
  m.tensor_parallel = 2;
  m.recompute = "full";
  m.partition_checkpoints = true;
  const Plan plan = plan_of(m, 1);
  EXPECT_TRUE(std::any_of(plan.ops.begin(), plan.ops.end(), [&](const Op& op) {
    return op.kind == OpKind::all_gather && op.queue == QueueId::tensor &&
           payload_bytes(op, plan.micro_batches.rows) == 2 * 4 * 8 * 4;
  }));
  EXPECT_EQ(staging_bytes(plan, QueueId::tensor), 2 * 4 * 8 * 4);
}

// NCCL sends from the device's memory; files are out of its reach.
TEST(Staging, NcclLeavesPiecesOfFiles) {
  SmallModel m;
  m.comm = "nccl";
  m.data_parallel = 2;
  m.zero_stage = 2;
  EXPECT_EQ(staging_bytes(plan_of(m, 1)), 0);
  m.offload = "optimizer";
  m.offload_target = "file";
  EXPECT_GT(staging_bytes(plan_of(m, 1)), 0);
}

}  // namespace gptbench
