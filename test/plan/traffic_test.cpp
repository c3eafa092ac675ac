// Bytes within and between nodes, by hand.
#include "plan/traffic.h"

#include <gtest/gtest.h>

#include "configs.h"

namespace gptbench {
namespace {

Plan plan_of(const SmallModel& model) {
  return make_plan(resolved_config(model), model.ranks(), 0);
}

double payload(const Plan& plan, Axis axis) {
  double bytes = 0.0;
  for (const CommTotal& total : plan.costs.comm)
    if (total.axis == axis) bytes += static_cast<double>(total.bytes);
  return bytes;
}

// data = 4 on nodes of 2: in the ring 0 1 2 3 ranks 0 and 2 send within their node, 1 and 3 to the
// other, each 2 x 3/4 of the array.
TEST(Traffic, RingOfGradients) {
  SmallModel model;
  model.data_parallel = 4;
  model.micro_batch = 1;
  model.global_batch = 4;
  const Plan plan = plan_of(model);
  const Traffic traffic = traffic_of(plan, 2);
  const double array = payload(plan, Axis::data);
  ASSERT_GE(array, 4.0 * static_cast<double>(plan.num_params));
  EXPECT_DOUBLE_EQ(traffic.at(Axis::data).within_bytes, 2.0 * 1.5 * array);
  EXPECT_DOUBLE_EQ(traffic.at(Axis::data).between_bytes, 2.0 * 1.5 * array);
  // One node holds all, or a node each.
  EXPECT_DOUBLE_EQ(traffic_of(plan, 4).at(Axis::data).between_bytes, 0.0);
  EXPECT_DOUBLE_EQ(traffic_of(plan, 1).at(Axis::data).within_bytes, 0.0);
}

// tensor = 2, pipeline = 2, nodes of 2: a node is a stage. Its tensor group stays within, each of 2
// micro-batches of 1 x T x C floats goes to the other node and its gradient comes back, on both
// tensor ranks.
TEST(Traffic, StagesOnNodes) {
  SmallModel model;
  model.layers = 2;
  model.tensor_parallel = 2;
  model.pipeline_parallel = 2;
  model.micro_batch = 1;
  model.global_batch = 2;
  const Plan plan = plan_of(model);
  const Traffic traffic = traffic_of(plan, 2);
  const double message = 4.0 * static_cast<double>(plan.shape.T * plan.shape.C);
  EXPECT_DOUBLE_EQ(traffic.at(Axis::pipeline).between_bytes, 2.0 * 2.0 * 2.0 * message);
  EXPECT_DOUBLE_EQ(traffic.at(Axis::pipeline).within_bytes, 0.0);
  EXPECT_DOUBLE_EQ(traffic.at(Axis::tensor).between_bytes, 0.0);
  // In a ring of two both ranks send half of each array, and again in an all-reduce.
  double tensor = 0.0;
  for (const int64_t rank : {0, 2})
    for (const CommTotal& total : make_plan(plan.config, 4, rank).costs.comm)
      if (total.axis == Axis::tensor)
        tensor +=
            2.0 * (total.kind == OpKind::all_reduce ? 1.0 : 0.5) * static_cast<double>(total.bytes);
  EXPECT_DOUBLE_EQ(traffic.at(Axis::tensor).within_bytes, tensor);
  // Nodes of 4: nothing leaves.
  for (const auto& [axis, bytes] : traffic_of(plan, 4))
    EXPECT_DOUBLE_EQ(bytes.between_bytes, 0.0) << name_of(axis);
}

// Messages of rows follow the sequences: two, one and one of four, two each of six. Under sequence
// parallelism a tensor-parallel rank sends its part of the rows to the next stage.
TEST(Traffic, ReplicasOfDifferentShares) {
  SmallModel model;
  model.tensor_parallel = 2;
  model.data_parallel = 3;
  model.pipeline_parallel = 2;
  model.micro_batch = 1;
  for (const bool sequence_parallel : {false, true}) {
    SCOPED_TRACE(sequence_parallel);
    model.sequence_parallel = sequence_parallel;
    const auto bytes_of = [&](int64_t global_batch, Axis axis) {
      model.global_batch = global_batch;
      return traffic_of(plan_of(model), 12).at(axis).within_bytes;
    };
    for (const Axis axis : {Axis::tensor, Axis::pipeline}) {
      SCOPED_TRACE(name_of(axis));
      const double sequence = bytes_of(6, axis) - bytes_of(5, axis);
      EXPECT_GT(sequence, 0.0);
      EXPECT_DOUBLE_EQ(bytes_of(5, axis) - bytes_of(4, axis), sequence);
    }
    // Output and gradient of a sequence between the stages: 4 x 8 floats each, in two halves, or
    // whole from both tensor-parallel ranks.
    EXPECT_DOUBLE_EQ(bytes_of(5, Axis::pipeline),
                     5.0 * 2.0 * 4.0 * 8.0 * 4.0 * (sequence_parallel ? 1.0 : 2.0));
    EXPECT_DOUBLE_EQ(bytes_of(4, Axis::data), bytes_of(6, Axis::data));
  }
}

}  // namespace
}  // namespace gptbench
