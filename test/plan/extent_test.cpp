// The bytes that operations move.
#include "plan/extent.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "configs.h"

namespace gptbench {
namespace {

const Op& first_of(const Plan& plan, OpKind kind) {
  return *std::find_if(plan.ops.begin(), plan.ops.end(),
                       [kind](const Op& op) { return op.kind == kind; });
}

SmallModel on_gpu() {
  SmallModel m;
  m.compute = "bf16";
  m.device = "cuda";
  return m;
}

// As the kernels' headers state them: 2 R C of the norm, 4 R C where it forms the sum, of bf16;
// beside them C of each parameter and R of each statistic in f32.
TEST(Extent, BytesMoved) {
  SmallModel m = on_gpu();
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  const int64_t R = plan.micro_batches.rows, C = m.hidden, F = 4 * C;
  const int64_t small = 2 * C * 2 + 2 * R * 4;
  const auto bytes_of = [&](const Op& op) { return bytes_moved(plan, op, R); };
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::layernorm_forward) continue;
    EXPECT_EQ(bytes_of(op), (op.has(Slot::sum) ? 4 : 2) * R * C * 2 + small);
  }
  // What is accumulated to is read and written.
  const Op& weight = first_of(plan, OpKind::linear_backward_weight);
  const GemmSize& size = weight.as<GemmSize>();
  EXPECT_EQ(bytes_of(weight), (R * size.N + R * size.K) * 2 + 2 * 4 * size.N * size.K +
                                  (weight.has(Slot::dbias) ? 2 * 4 * size.N : 0));
  EXPECT_EQ(bytes_of(first_of(plan, OpKind::linear_gelu_forward)),
            (R * C + F * C + F + 2 * R * F) * 2);
  EXPECT_EQ(bytes_of(first_of(plan, OpKind::fill_zero)),
            first_of(plan, OpKind::fill_zero).as<ElementCount>().of(R) * 4);
  // A row of each table for each token.
  EXPECT_EQ(bytes_of(first_of(plan, OpKind::embedding_forward)),
            R * 4 + (R * C + std::min(R, m.seq) * C + R * C) * 2);
}

// The heads of q and k are read and written, v is not.
TEST(Extent, BytesOfRotaryPositions) {
  SmallModel m = on_gpu();
  m.family = "llama";
  m.heads = 4;
  m.kv_heads = 2;
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  const int64_t R = plan.micro_batches.rows, D = m.hidden / m.heads;
  for (const OpKind kind : {OpKind::rotary_forward, OpKind::rotary_backward})
    EXPECT_EQ(bytes_moved(plan, first_of(plan, kind), R),
              2 * R * (4 + 2) * D * size_of(DType::bf16))
        << spec_of(kind).name;
}

}  // namespace
}  // namespace gptbench
