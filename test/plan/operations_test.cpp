// The operation lists of whole plans, replayed on a model of memory and queues.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "configs.h"
#include "memory_model.h"
#include "plan/messages.h"
#include "plan/plan.h"
#include "plan/programs.h"

namespace gptbench {
namespace {

struct Layout {
  SmallModel model;
  std::string name;
};

// Of device ref, whose plans are those of the host but for the scratch memory.
std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const int64_t data_parallel : {1, 3}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const char* compute : {"fp32", "bf16", "fp64"}) {
        SmallModel m;
        m.data_parallel = data_parallel;
        m.dropout = dropout;
        m.compute = compute;
        m.micro_batch = 2;
        m.global_batch = 7;
        all.push_back({m, std::string(compute) + ", dropout " + std::to_string(dropout) +
                              ", replicas " + std::to_string(data_parallel)});
      }
    }
  }
  // A micro-batch of more rows than the head takes at a time, the last chunk not full.
  SmallModel chunks;
  chunks.layers = 1;
  chunks.seq = 700;
  chunks.hidden = 2;
  chunks.heads = 1;
  chunks.vocab = 3;
  chunks.vocab_multiple = 1;
  chunks.micro_batch = 3;
  chunks.global_batch = 8;
  all.push_back({chunks, "head in chunks"});
  return all;
}

void for_each_plan(const std::function<void(const Plan&)>& check) {
  for (const Layout& layout : layouts()) {
    const Config config = resolved_config(layout.model);
    for (int64_t rank = 0; rank < layout.model.data_parallel; ++rank) {
      SCOPED_TRACE(layout.name + ", rank " + std::to_string(rank));
      check(make_plan(config, layout.model.data_parallel, rank, {}));
    }
  }
}

TEST(Operations, DataFlowIsSoundInEveryStep) {
  for_each_plan([](const Plan& plan) {
    MemoryModel memory(plan);
    for (int step = 0; step < 2; ++step) {
      const std::vector<std::string> complaints = memory.replay_step();
      EXPECT_TRUE(complaints.empty()) << "step " << step << ":\n" << join(complaints, "\n");
    }
  });
}

// The model of memory finds what it is there to find.
TEST(Operations, ReplayFindsBrokenPlans) {
  SmallModel m;
  m.data_parallel = 2;
  const Plan sound = make_plan(resolved_config(m), 2, 0, {});
  const auto complaints = [](const Plan& plan) {
    return join(MemoryModel(plan).replay_step(), "\n");
  };
  ASSERT_EQ(complaints(sound), "");
  const auto first_of = [](Plan& plan, OpKind kind) -> Op& {
    return *std::find_if(plan.ops.begin(), plan.ops.end(),
                         [kind](const Op& op) { return op.kind == kind; });
  };

  Plan no_wait = sound;  // a reduction that does not wait for the gradients
  for (Op& op : no_wait.ops)
    if (op.kind == OpKind::all_reduce) op.waits_for.clear();
  EXPECT_NE(complaints(no_wait).find("not ordered behind the last write"), std::string::npos);

  Plan unread = sound;  // a sum of squares that does not wait for the reduction
  for (Op& op : unread.ops)
    if (op.kind == OpKind::squared_norm) op.waits_for.clear();
  EXPECT_NE(complaints(unread).find("squared_norm"), std::string::npos);

  Plan not_zeroed = sound;
  first_of(not_zeroed, OpKind::fill_zero).elements -= 1;
  EXPECT_NE(complaints(not_zeroed).find("read before it is written"), std::string::npos);

  Plan overlapping = sound;  // dx of the backward pass laid over dfc
  const auto named = [&](const char* name) -> Buffer& {
    return *std::find_if(overlapping.buffers.begin(), overlapping.buffers.end(),
                         [name](const Buffer& b) { return b.name == name; });
  };
  named("activations::backward.dx").offset = named("activations::backward.dfc").offset;
  EXPECT_NE(complaints(overlapping).find("overwritten through"), std::string::npos);

  Plan overrun = sound;
  first_of(overrun, OpKind::linear_forward).N += 1;
  EXPECT_NE(complaints(overrun).find("leaves the buffer"), std::string::npos);
}

TEST(Operations, WaitsPointBackwardsAndAreSignalled) {
  for_each_plan([](const Plan& plan) {
    for (size_t i = 0; i < plan.ops.size(); ++i) {
      for (const int32_t other : plan.ops[i].waits_for) {
        ASSERT_GE(other, 0);
        ASSERT_LT(other, static_cast<int32_t>(i));
        EXPECT_TRUE(plan.ops[static_cast<size_t>(other)].signals);
      }
    }
    int32_t end = 0;
    for (const Program& program : plan.programs) {  // programs partition the operations
      EXPECT_EQ(program.first, end);
      EXPECT_GE(program.last, program.first);
      end = program.last;
    }
    EXPECT_EQ(end, static_cast<int32_t>(plan.ops.size()));
  });
}

// Every tensor's gradient is added to in every micro-batch, and zeroed once a step before.
TEST(Operations, EveryGradientIsFormedInEveryMicroBatch) {
  for_each_plan([](const Plan& plan) {
    const int gradient = plan.representation(Role::gradient).buffer;
    size_t micro_batches = 0;
    for (const Task& task : plan.tasks)
      micro_batches = std::max(micro_batches, static_cast<size_t>(task.micro_batch + 1));
    for (size_t t = 0; t < plan.tensors.size(); ++t) {
      std::set<int32_t> seen;
      const Placement& at = plan.space.placements[t];
      for_each_operation(plan, [&](const Task& task, int32_t i) {
        const Op& op = plan.ops[static_cast<size_t>(i)];
        if (op.kind == OpKind::all_reduce) return;
        for (const Touch& touch : touches_of(plan, op, {task.program, 0, 0, {0, 1}}))
          if (touch.access == Access::accumulate && touch.operand.buffer == gradient &&
              touch.operand.offset == at.begin && touch.elements == at.size)
            seen.insert(task.micro_batch);
      });
      EXPECT_EQ(seen.size(), micro_batches) << plan.tensors[t].name;
    }
  });
}

// A reduction starts after the bucket's last writer and before backward has ended (but for the
// embedding's, whose gradient comes last), and there is work to hide it behind: at least one
// compute operation lies between its start and whoever waits for it.
TEST(Operations, ReductionsOverlapComputing) {
  for_each_plan([](const Plan& plan) {
    if (plan.grid.data == 1) {
      EXPECT_TRUE(plan.comm.empty());
      return;
    }
    const int gradient = plan.representation(Role::gradient).buffer;
    std::vector<int32_t> issued;
    for_each_operation(plan, [&](const Task&, int32_t i) { issued.push_back(i); });
    size_t reduced = 0;
    for (size_t start = 0; start < issued.size(); ++start) {
      const int32_t id = issued[start];
      const Op& reduction = plan.ops[static_cast<size_t>(id)];
      if (reduction.kind != OpKind::all_reduce || reduction.writes[0].buffer != gradient) continue;
      const Bucket& bucket =
          *std::find_if(plan.space.buckets.begin(), plan.space.buckets.end(),
                        [&](const Bucket& b) { return b.begin == reduction.writes[0].offset; });
      EXPECT_EQ(reduction.elements, bucket.end - bucket.begin);
      ++reduced;

      bool written = false;
      int hiding = 0;
      bool waited_for = false;
      for (size_t k = 0; k < issued.size() && !waited_for; ++k) {
        const Op& op = plan.ops[static_cast<size_t>(issued[k])];
        for (const Operand& operand : op.writes) {
          if (operand.buffer != gradient || operand.offset < bucket.begin ||
              operand.offset >= bucket.end || op.kind == OpKind::all_reduce)
            continue;
          written = written || k < start;
          EXPECT_LT(k, start) << "written after its reduction began: operation " << issued[k];
        }
        if (k <= start) continue;
        waited_for = std::count(op.waits_for.begin(), op.waits_for.end(), id) > 0;
        if (!waited_for && op.queue == QueueId::compute) ++hiding;
      }
      EXPECT_TRUE(written);
      EXPECT_TRUE(waited_for);
      EXPECT_GE(hiding, 1) << "bucket of layer " << bucket.first_layer;
    }
    EXPECT_EQ(reduced, plan.space.buckets.size());
  });
}

// Forward and backward of the micro-batches in order, one set of reductions, one optimizer.
TEST(Operations, TasksOfAStep) {
  for_each_plan([](const Plan& plan) {
    const auto kind = [&](const Task& task) {
      return plan.programs[static_cast<size_t>(task.program)].kind;
    };
    ASSERT_GE(plan.tasks.size(), 4u);
    EXPECT_EQ(kind(plan.tasks.front()), ProgramKind::begin_step);
    EXPECT_EQ(kind(plan.tasks.back()), ProgramKind::end_step);
    const size_t micro_batches = (plan.tasks.size() - 2) / 2;
    for (size_t m = 0; m < micro_batches; ++m) {
      const Task& forward = plan.tasks[1 + 2 * m];
      const Task& backward = plan.tasks[2 + 2 * m];
      EXPECT_EQ(kind(forward), ProgramKind::forward);
      const bool reduces = plan.grid.data > 1 && m + 1 == micro_batches;
      EXPECT_EQ(kind(backward), reduces ? ProgramKind::backward_last : ProgramKind::backward);
      EXPECT_EQ(forward.micro_batch, static_cast<int32_t>(m));
      EXPECT_EQ(backward.sequences.first, forward.sequences.first);
      EXPECT_EQ(backward.sequences.count, forward.sequences.count);
    }
  });
}

// Payload of a step: the flat gradient in f32 (f64 in fp64) over the data axis, two doubles over
// the world.
TEST(Operations, MessagesFollowTheFormula) {
  for_each_plan([](const Plan& plan) {
    if (plan.grid.data == 1) return;
    const int64_t element = std::string(plan.config.precision.compute) == "fp64" ? 8 : 4;
    ASSERT_EQ(plan.comm.size(), 2u);
    EXPECT_EQ(plan.comm[0].axis, Axis::data);
    EXPECT_EQ(plan.comm[0].kind, OpKind::all_reduce);
    EXPECT_EQ(plan.comm[0].bytes, plan.space.elements * element);
    EXPECT_EQ(plan.comm[0].count, plan.shape.L + 1);
    EXPECT_EQ(plan.comm[0].messages, plan.shape.L + 1);  // each bucket below max_message_bytes
    EXPECT_EQ(plan.comm[1].axis, Axis::world);
    EXPECT_EQ(plan.comm[1].bytes, 16);
    EXPECT_EQ(plan.comm[1].messages, 1);
  });
}

}  // namespace
}  // namespace gptbench
