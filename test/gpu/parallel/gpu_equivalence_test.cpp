// Any decomposition trains on GPUs the model that one rank trains, with messages through MPI (ranks
// may then share a GPU) and through NCCL (each has its own).
#include <gtest/gtest.h>

#include "cuda/backend.h"
#include "equivalence_checks.h"

namespace gptbench {
namespace {

// Smaller models and fewer steps than on a host, since these also run in an emulation: the second
// step has weights, moments and scales that the first one left.
constexpr int steps = 2;

const char* const single_precision[] = {
    "cuda L2 batch2",
    "cuda L2 selective dropout micro2 batch3",
    "cuda L2 optimizer,parameters batch2",
    "cuda L3 activations full every2 file batch2",
    "llama cuda L2 full batch2",
    "bert padded cuda L2 micro3 batch4",
    "mpt alibi nobias cuda L2 dropout batch2",
    // two ranks
    "tp2 sp cuda L2 dropout batch2",
    "pp2 v2 cuda batch4",
    "pp2 zero_bubble selective cuda L2 batch3",
    "dp2 zero1 cuda L2 batch5 micro2",
    "dp2 zero3 full every2 cuda L2 batch3",
    "dp2 zero2 optimizer cuda L2 batch4",
    "dp2 zero1 optimizer hoststep cuda L2 batch4",
    "dp2 zero3 optimizer,parameters file cuda L2 batch4",
    "pp2 gpipe activations cuda L4 batch3",
    "cp2 zero2 cuda L2 micro2 batch4",
    "llama kv4 tp2 sp selective cuda L2 batch2",
    "bert padded pp2 1f1b full cuda L2 batch3",
    // four
    "tp2 sp pp2 v2 selective cuda batch3",
    "tp2 sp dp2 zero3 full cuda L2 batch4",
    "pp2 zero_bubble dp2 zero1 cuda L2 batch4",
    "cp2 pp2 zero_bubble cuda L2 batch3",
    "dp4 zero3 group2 cuda L2 batch4",
};

const char* const half_precision[] = {
    "bf16 cuda L2 batch2 w32 r16",
    "bf16 cuda L2 batch2 r16 o16 nomaster full",
    "fp16 cuda L2 batch2 r16 nomaster",
    "fp16 cuda L2 batch2 r16 optimizer hoststep",
    "llama bf16 cuda L2 batch2",
    "tp2 sp bf16 cuda L2 batch2",
    "tp2 fp16 r16 full parts activations cuda L3 batch2",
    "pp2 v2 bf16 cuda batch3",
    "dp2 zero1 bf16 cuda L2 batch4 r16 o16",
    "dp2 zero3 fp16 cuda L2 batch4 optimizer,parameters",
    "dp2 zero3 bf16 cuda L2 batch4 w32",
    "dp2 zero2 fp16 cuda L2 batch4 r16 optimizer hoststep",
    "cp2 bf16 cuda L2 batch2",
    "bert padded tp2 sp fp16 cuda L2 batch2",
    "tp2 sp pp2 zero_bubble bf16 cuda L2 batch3",
    "tp2 dp2 zero2 selective bf16 cuda L2 batch4",
};

const char* const eight_bits[] = {
    "fp8 cuda L2 batch2",
    "llama fp8 cuda L2 full batch2",
    "tp2 sp fp8 cuda L2 batch2",
    "pp2 zero_bubble fp8 cuda L2 batch3",
    "dp2 zero3 full fp8 cuda L2 batch4 r16",
    "tp2 sp dp2 zero1 fp8 cuda L2 batch4",
};

const char* const identical_stages[] = {
    "dp2 det cuda L2 batch5",
    "dp2 det bf16 full cuda L2 batch4 r16 o16 nomaster",
    "dp4 group2 det cuda L2 batch4",
};

// The members of the tables above with as many ranks as there are. Ranks without communicators are
// tested once.
class GpuEquivalence : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (visible_gpus().devices == 0) GTEST_SKIP() << visible_gpus().reason;
    if (std::string(GetParam()) != "nccl") return;
    if (world_.size() == 1) GTEST_SKIP() << "one rank sends no messages";
    const std::string obstacle = nccl_obstacle(world_);
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  }
  template <size_t n>
  std::vector<SmallModel> models(const char* const (&texts)[n]) {
    std::vector<SmallModel> all = combinations_of(texts, world_.size());
    EXPECT_FALSE(all.empty()) << "no case of " << world_.size() << " ranks";
    for (SmallModel& m : all) m.comm = GetParam();
    return all;
  }
  MpiWorld world_{nullptr, nullptr};
};

TEST_P(GpuEquivalence, InSinglePrecision) {
  for (const SmallModel& m : models(single_precision)) check_single_precision(world_, m, steps);
}

TEST_P(GpuEquivalence, InHalfPrecision) {
  for (const SmallModel& m : models(half_precision))
    check_half_precision(world_, m, std::string(m.compute) == "fp16" ? 0x1p-11 : 0x1p-8, steps);
}

TEST_P(GpuEquivalence, InFp8) {
  for (const SmallModel& m : models(eight_bits)) check_fp8_of_bf16(world_, m, steps);
}

TEST_P(GpuEquivalence, ZeroStagesAreIdenticalWhereDeterministic) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank has no ZeRO stages";
  for (const SmallModel& m : models(identical_stages)) check_identical_stages(world_, m, steps);
}

INSTANTIATE_TEST_SUITE_P(Through, GpuEquivalence, ::testing::Values("mpi", "nccl"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace gptbench
