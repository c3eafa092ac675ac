// Sizes that no attention kernel of ours takes are refused before the first step.
#include "cuda/attention/limits.h"

#include "base/error.h"
#include "configs.h"
#include "gpu_test.h"
#include "plan/plan.h"

namespace gptbench::test {
namespace {

constexpr int64_t H200 = int64_t{227} << 10, L40S = int64_t{99} << 10;

Plan plan_of(SmallModel m) {
  m.device = "cuda";
  m.global_batch = m.micro_batch;
  return make_plan(resolved_config(m), m.ranks(), 0);
}

// "" where the plan is accepted.
std::string refusal_of(const SmallModel& m, int64_t shared_bytes = H200) {
  try {
    check_attention(plan_of(m), "GPU of a test", shared_bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "";
}

SmallModel heads_of(int64_t D) {
  SmallModel m;
  m.heads = 1;
  m.hidden = D;
  return m;
}

}  // namespace

TEST(AttentionLimits, WhatFits) {
  EXPECT_EQ(refusal_of(heads_of(256)), "");
  SmallModel m = heads_of(8);
  m.seq = (int64_t{1} << 30) - 1;
  EXPECT_EQ(refusal_of(m), "");
}

TEST(AttentionLimits, IndicesOf32Bits) {
  SmallModel m = heads_of(8);
  m.seq = int64_t{1} << 30;
  EXPECT_EQ(refusal_of(m),
            "device = 'cuda' requires model.seq_length of at most 1073741823 (found 1073741824): "
            "reduce it");
  m = heads_of(128);
  m.heads = 32768;
  m.hidden = m.heads * 128;
  EXPECT_EQ(refusal_of(m),
            "device = 'cuda' requires a number of elements of q, k and v per position of at most "
            "8388607 (found 12582912): increase parallel.tensor_parallel");
  m.tensor_parallel = 2;
  EXPECT_EQ(refusal_of(m), "");
  // Before algorithms are searched for.
  m = heads_of(8);
  m.seq = int64_t{1} << 30;
  EXPECT_THROW(gpu().autotuning().select(plan_of(m)), Error);
}

TEST(AttentionLimits, PlacesOfAGrid) {
  SmallModel m = heads_of(8);
  m.heads = 65536;
  m.hidden = 8 * m.heads;
  EXPECT_EQ(refusal_of(m),
            "device = 'cuda' requires a number of heads per rank of at most 65535 (found 65536): "
            "increase parallel.tensor_parallel");
  m = heads_of(8);
  m.micro_batch = 65536;
  EXPECT_EQ(refusal_of(m),
            "device = 'cuda' requires batch.micro_batch_size of at most 65535 (found 65536): "
            "reduce it");
  EXPECT_EQ(refusal_of(heads_of(264)),
            "device = 'cuda' requires a head size of at most 256 (found 264): increase "
            "model.num_attention_heads");
}

// Compute capability 8.6, 8.9 and 12.x.
TEST(AttentionLimits, SharedMemoryOfSmallerGpus) {
  SmallModel m = heads_of(128);
  EXPECT_EQ(refusal_of(m, L40S),
            "device = 'cuda': attention with heads of 128 elements in fp32 needs 149.00 KiB of "
            "shared memory per block, GPU of a test offers 99.00 KiB; use precision.compute = "
            "'bf16' with head sizes that are multiples of 8 up to 128, or head sizes up to 64");
  m.compute = "bf16";
  EXPECT_EQ(refusal_of(m, L40S), "");
  EXPECT_EQ(refusal_of(heads_of(64), L40S), "");
}

}  // namespace gptbench::test
