#include "plan/tensor_parts.h"

#include <gtest/gtest.h>

#include <map>

#include "decompositions.h"
#include "plan/plan.h"

namespace gptbench {
namespace {

struct Case {
  const char* name;
  void (*set)(SmallModel&);
};

const Case cases[] = {
    {"one rank", [](SmallModel&) {}},
    {"replicas", [](SmallModel& m) { m.data_parallel = 3; }},
    {"zero 1 with one copy", [](SmallModel& m) { m.data_parallel = 3, m.zero_stage = 1; }},
    {"zero 2 with masters",
     [](SmallModel& m) {
       m.data_parallel = 4, m.zero_stage = 2, m.zero_group = 2;
       m.device = "host", m.compute = "bf16";
     }},
    {"zero 3",
     [](SmallModel& m) { m.data_parallel = 2, m.context_parallel = 2, m.zero_stage = 3; }},
    {"tensor and pipeline",
     [](SmallModel& m) {
       m.tensor_parallel = 2, m.pipeline_parallel = 2, m.data_parallel = 2, m.zero_stage = 1;
     }},
    {"fp8", [](SmallModel& m) {
       m.pipeline_parallel = 2, m.data_parallel = 2;
       m.device = "host", m.compute = "fp8", m.fp8_amax_history = 5;
     }}};

// All ranks together visit each element of a tensor once; each rank holds what it visits.
TEST(TensorParts, OncePerElementOverAllRanks) {
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    SmallModel m;
    m.global_batch = 8;
    each.set(m);
    const Config config = resolved_config(m);
    std::map<std::pair<Role, int>, std::vector<int>> visits;
    for (int64_t rank = 0; rank < m.ranks(); ++rank) {
      const Plan plan = make_plan(config, m.ranks(), rank);
      for (const Role role : {Role::working, Role::master, Role::moment1, Role::moment2}) {
        const Representation& copy = plan.representation(role);
        const int64_t held = plan.buffers[static_cast<size_t>(copy.buffer)].elements;
        for (size_t i = 0; i < plan.space.tensors.size(); ++i) {
          const int tensor = plan.space.tensors[i].tensor;
          std::vector<int>& counts = visits[{role, tensor}];
          counts.resize(static_cast<size_t>(plan.tensors[static_cast<size_t>(tensor)].size()));
          std::map<int64_t, int64_t> place;  // of what this rank holds
          for_each_part(plan, copy, i, Visit::all, [&](const TensorPart& part) {
            EXPECT_LE(part.at.offset + part.count, held);
            for (int64_t k = 0; k < part.count; ++k) place[part.first + k] = part.at.offset + k;
          });
          for_each_part(plan, copy, i, Visit::once, [&](const TensorPart& part) {
            for (int64_t k = 0; k < part.count; ++k) {
              ++counts[static_cast<size_t>(part.first + k)];
              EXPECT_EQ(place.at(part.first + k), part.at.offset + k);
            }
          });
        }
      }
    }
    for (const auto& [which, counts] : visits)
      for (const int count : counts) ASSERT_EQ(count, 1) << which.second;
  }
}

// 12 bytes of each parameter, without rows that pad the vocabulary for tensor parallelism alone; of
// fp8 a scale and five magnitudes of three factors of four matrices in two layers.
TEST(TensorParts, SharesOfACheckpointAddUp) {
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    SmallModel m;
    m.global_batch = 8;
    m.vocab_multiple = 1;  // 11 tokens, which two ranks do not divide
    each.set(m);
    Config config = resolved_config(m);
    config.checkpoint.directory = "ck";
    int64_t bytes = 0, planned = 0, largest = 0;
    for (int64_t rank = 0; rank < m.ranks(); ++rank) {
      const Plan plan = make_plan(config, m.ranks(), rank);
      const int64_t share = checkpoint_share_bytes(plan);
      bytes += share;
      largest = std::max(largest, share);
      planned += plan.buffers[static_cast<size_t>(plan.buffer_index.checkpoint_copy)].elements;
      EXPECT_GE(plan.class_bytes[static_cast<size_t>(MemoryClass::host)], share);
    }
    const int64_t parameters = count_params(tensor_table(config.model));
    const bool fp8 = std::string(m.compute) == "fp8";
    EXPECT_EQ(bytes, 3 * 4 * parameters + (fp8 ? 2 * 4 * 3 * 6 * 4 : 0));
    EXPECT_EQ(planned, bytes);
    // Replicas share the work.
    EXPECT_LT(largest, 2 * bytes / m.ranks() + 3 * 4 * 8 * 8);
    config.checkpoint.async = false;
    EXPECT_LT(make_plan(config, m.ranks(), 0).buffer_index.checkpoint_copy, 0);
  }
}

}  // namespace
}  // namespace gptbench
