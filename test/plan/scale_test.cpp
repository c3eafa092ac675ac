// What a rank makes to set itself up does not grow with the number of ranks: its plan allocates the
// same, and describes the same number of operations and buffers, in any number of replicas.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <tuple>
#include <utility>

#include "configs.h"
#include "decompositions.h"
#include "plan/describe.h"
#include "tasks.h"

namespace {

struct Allocations {
  int64_t number = 0, bytes = 0;
};
Allocations counted;

}  // namespace

// Every allocation of this program. Not inlined: GCC would warn of free() where it inlines one of a
// pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  counted.number += 1;
  counted.bytes += static_cast<int64_t>(bytes);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  counted.number += 1;
  counted.bytes += static_cast<int64_t>(bytes);
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace gptbench {
namespace {

struct Cost {
  Allocations allocations;
  size_t ops = 0, buffers = 0, tasks = 0, scalars = 0;
};

// Cost of the last rank; each replica has two micro-batches of one sequence.
Cost cost_of(SmallModel m, int64_t replicas) {
  m.data_parallel = replicas;
  m.micro_batch = 1;
  m.global_batch = 2 * replicas;
  const Config config = resolved_config(m);
  const Allocations before = counted;
  const Plan plan = make_plan(config, m.ranks(), m.ranks() - 1);
  Cost cost;
  cost.allocations = {counted.number - before.number, counted.bytes - before.bytes};
  cost.ops = plan.ops.size();
  cost.buffers = plan.buffers.size();
  cost.tasks = tasks_of(plan).size();
  cost.scalars =
      static_cast<size_t>(plan.buffers[static_cast<size_t>(plan.buffer_index.scalars)].elements);
  return cost;
}

std::vector<SmallModel> cases() {
  std::vector<SmallModel> all;
  for (int64_t stage = 0; stage <= 3; ++stage) {
    SmallModel m;
    m.layers = 4;
    m.hidden = 256;
    m.heads = 4;
    m.seq = 16;
    m.zero_stage = stage;
    all.push_back(m);
    m.tensor_parallel = m.context_parallel = m.pipeline_parallel = 2;
    m.sequence_parallel = true;
    all.push_back(m);
    m.zero_group = 8;
    all.push_back(m);
  }
  return all;
}

TEST(Scale, PlansDoNotGrowWithTheNumberOfRanks) {
  for (const SmallModel& m : cases()) {
    SCOPED_TRACE(name_of(m));
    const Cost few = cost_of(m, 16);
    for (const int64_t replicas : {64, 1024, 16384}) {
      const Cost many = cost_of(m, replicas);
      // A shard may lie in fewer tensors the smaller it is: less to sum and to update, never more.
      EXPECT_LE(many.ops, few.ops);
      EXPECT_LE(many.allocations.number, few.allocations.number);
      EXPECT_LE(many.allocations.bytes, few.allocations.bytes + few.allocations.bytes / 50);
      EXPECT_EQ(many.buffers, few.buffers);
      EXPECT_EQ(many.tasks, few.tasks);
      EXPECT_EQ(many.scalars, few.scalars);
    }
  }
}

// Micro-batches and blocks of the head's rows are repetitions: a plan is no larger for more of
// them.
TEST(Scale, PlansDoNotGrowWithTheBatch) {
  constexpr int64_t largest = 2147483647;  // that the keys take
  for (const char* schedule : {"1f1b", "gpipe", "interleaved", "zero_bubble"}) {
    SCOPED_TRACE(schedule);
    SmallModel m;
    m.layers = 4;
    m.pipeline_parallel = 2;
    m.virtual_stages = schedule[0] == 'i' ? 2 : 1;
    m.schedule = schedule;
    const auto plan_of = [&](int64_t seq, int64_t micro_batch, int64_t global_batch) {
      m.seq = seq;
      m.micro_batch = micro_batch;
      m.global_batch = global_batch;
      const Config config = resolved_config(m);
      const Allocations before = counted;
      Plan plan = make_plan(config, 2, 1);
      describe(plan, stage_figures(plan));
      return std::pair{counted.bytes - before.bytes, std::move(plan)};
    };
    const auto [few_bytes, few] = plan_of(1024, 2, 101);
    for (const auto& [seq, micro_batch, global_batch] :
         {std::tuple{int64_t{1024}, int64_t{1}, largest},
          std::tuple{largest, int64_t{1}, int64_t{1000000}},
          std::tuple{int64_t{4}, largest, largest},
          std::tuple{int64_t{1024}, int64_t{2}, largest}}) {
      if (schedule[0] == 'g' && seq == largest) continue;  // all at a time: more than int64 bytes
      const auto [bytes, plan] = plan_of(seq, micro_batch, global_batch);
      EXPECT_EQ(plan.ops.size(), few.ops.size() - (micro_batch * seq == 1024 ? 5 : 0));
      EXPECT_LE(bytes, few_bytes + few_bytes / 10);
      const int64_t micro_batches = (global_batch + micro_batch - 1) / micro_batch;
      // Rank 1 sends a gradient for each forward pass's message, and forward from its first chunk.
      for (const CommTotal& total : plan.costs.comm)
        if (total.kind == OpKind::send) {
          EXPECT_EQ(total.count, micro_batches * (2 * m.virtual_stages - 1));
        }
    }
  }
}

// What takes time for each pair of layers does not end before the test's time limit.
TEST(Scale, PlansOfManyLayers) {
  SmallModel m;
  m.layers = 10000;
  m.global_batch = 8;
  m.data_parallel = 2;
  m.zero_stage = 3;
  m.offload = "optimizer,parameters,activations";
  EXPECT_GT(make_plan(resolved_config(m), 2, 0).ops.size(), 10000u);
  m.zero_stage = 0;
  m.offload = "none";
  m.tensor_parallel = 2;
  m.sequence_parallel = true;
  m.compute = "fp8";
  m.recompute = "full";
  EXPECT_GT(make_plan(resolved_config(m), 4, 0).ops.size(), 10000u);
}

// Where norms are summed over fixed shards there is a partial sum for each: eight bytes per shard
// and unit, which is what run.deterministic costs. A rank forms those of its own shard.
TEST(Scale, DeterministicNormsKeepASumForEachShard) {
  SmallModel m;
  m.deterministic = true;
  for (const int stage : {0, 1}) {
    m.zero_stage = stage;
    const Cost few = cost_of(m, 16), many = cost_of(m, 64);
    EXPECT_EQ(many.buffers, few.buffers) << stage;
    EXPECT_LE(many.ops, few.ops) << stage;
    const size_t units = 5;  // two embeddings, two layers, the last LayerNorm
    EXPECT_EQ(many.scalars - few.scalars, units * (64 - 16)) << stage;
  }
}

}  // namespace
}  // namespace gptbench
