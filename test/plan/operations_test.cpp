// The operation lists of whole plans, replayed on a model of memory and queues.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "base/text.h"
#include "decompositions.h"
#include "memory_model.h"
#include "plan/extent.h"
#include "plan/messages.h"
#include "plan/ops.h"
#include "plan/plan.h"
#include "tasks.h"

namespace gptbench {
namespace {

// Decompositions on device ref, whose plans are those of the host but for the scratch memory.
std::vector<SmallModel> layouts() {
  std::vector<SmallModel> all = all_decompositions();
  for (const int64_t data_parallel : {1, 3}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const char* compute : {"fp32", "bf16", "fp16", "fp64"}) {
        SmallModel m;
        m.data_parallel = data_parallel;
        m.dropout = dropout;
        m.compute = compute;
        m.micro_batch = 2;
        m.global_batch = 7;
        all.push_back(m);
        m.tensor_parallel = 2;
        m.sequence_parallel = dropout > 0.0;
        m.pipeline_parallel = 2;
        m.zero_stage = data_parallel;
        all.push_back(m);
      }
    }
  }
  // Plans of a GPU have operations that are fused.
  SmallModel gpu;
  gpu.device = "cuda";
  gpu.compute = "bf16";
  gpu.recompute = "selective";
  gpu.tensor_parallel = 2;
  gpu.sequence_parallel = true;
  gpu.global_batch = 3;
  all.push_back(gpu);
  gpu.recompute = "none";
  gpu.tensor_parallel = 1;
  gpu.sequence_parallel = false;
  gpu.pipeline_parallel = 2;
  gpu.schedule = "zero_bubble";
  all.push_back(gpu);
  gpu.schedule = "1f1b";
  gpu.family = "bert";
  all.push_back(gpu);
  gpu.short_seq_prob = 0.5;
  all.push_back(gpu);
  gpu.layers = 4;
  gpu.virtual_stages = 2;
  gpu.schedule = "interleaved";
  gpu.recompute = "full";
  all.push_back(gpu);
  // Factors in fp8: copies of parameters that lie flat, pass through windows, are converted before;
  // weight gradients formed later; transposed copies, which GPUs want.
  for (const char* device : {"ref", "host", "cuda"}) {
    for (int64_t zero = 0; zero <= 3; ++zero) {
      for (const char* recompute : {"none", "selective", "full"}) {
        SmallModel m;
        m.device = device;
        m.compute = "fp8";
        m.layers = 3;
        m.hidden = 32;
        // A multiple of 16 lets activations be transposed where they are formed.
        if (device[0] == 'c' && zero < 2) m.seq = 16;
        m.data_parallel = zero > 0 ? 2 : 1;
        m.zero_stage = zero;
        m.recompute = recompute;
        m.tensor_parallel = zero % 2 + 1;
        m.sequence_parallel = zero == 3;
        m.family = zero == 2 ? "llama" : "gpt";
        m.parameters = zero == 1 && device[0] != 'r' ? "fp32" : "";
        m.pipeline_parallel = zero == 1 ? 2 : 1;
        m.schedule = recompute[0] != 'f' && zero == 1 ? "zero_bubble" : "1f1b";
        m.offload = zero == 0 && recompute[0] == 'n' ? "parameters" : "none";
        m.global_batch = 4 * m.data_parallel + 1;
        all.push_back(m);
      }
    }
  }
  // A micro-batch of more rows than the head takes at a time: 2,800 are three chunks, the last one
  // not full, and the 700 of the last micro-batch part of the first.
  SmallModel chunks;
  chunks.layers = 1;
  chunks.seq = 700;
  chunks.hidden = 2;
  chunks.heads = 2;
  chunks.micro_batch = 4;
  chunks.global_batch = 5;
  all.push_back(chunks);
  chunks.tensor_parallel = 2;
  chunks.sequence_parallel = true;
  all.push_back(chunks);
  return all;
}

void expect_sound_data_flow(const Plan& plan) {
  MemoryModel memory(plan);
  for (int step = 0; step < (plan.rank == 0 ? 2 : 1); ++step) {
    const std::vector<std::string> complaints = memory.replay_step();
    EXPECT_TRUE(complaints.empty()) << "step " << step << ":\n" << join(complaints, "\n");
  }
}

void expect_waits_for_signals_of_other_queues(const Plan& plan) {
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    for (const int32_t wait : plan.ops[i].waits_for) {
      ASSERT_GE(wait, 0);
      ASSERT_LT(wait, static_cast<int32_t>(plan.ops.size()));
      EXPECT_NE(wait, static_cast<int32_t>(i));
      EXPECT_GT(plan.ops[static_cast<size_t>(wait)].events, 0);
      EXPECT_NE(plan.ops[static_cast<size_t>(wait)].queue, plan.ops[i].queue);
    }
  }
}

void expect_programs_partition_operations(const Plan& plan) {
  int32_t end = 0;
  for (const Program& program : plan.programs) {
    EXPECT_EQ(program.first, end);
    EXPECT_GE(program.last, program.first);
    end = program.last;
  }
  EXPECT_EQ(end, static_cast<int32_t>(plan.ops.size()));
}

bool is_access(TouchKind kind, Access access) {
  switch (kind) {
    case TouchKind::read:
    case TouchKind::transmit:
      return access == Access::read;
    case TouchKind::assign:
    case TouchKind::arrive:
      return access == Access::write;
    case TouchKind::accumulate:
      break;
  }
  return access == Access::accumulate;
}

// Operations have a region and the operands that the table says, and the table's extents and
// accesses are those of the kernels, as touches.cpp knows them.
void expect_operations_of_the_table(const Plan& plan) {
  std::set<int32_t> programs;
  for (const Task& task : tasks_of(plan)) {
    if (!programs.insert(task.program).second) continue;  // the first run of each
    const Program& program = plan.programs[static_cast<size_t>(task.program)];
    const int64_t held_rows = task.sequences.count * plan.T_local();
    for (int32_t i = program.first; i < program.last; ++i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      ASSERT_EQ(departure_from_spec(op), "");
      ASSERT_TRUE(op.region != Region::automatic) << spec_of(op.kind).name;
      std::map<Slot, int64_t> touched;
      for (const Touch& touch : touches_of(plan, op, task)) {
        if (!op.has(touch.slot)) continue;
        touched[touch.slot] += touch.elements;
        const bool begins_step = touch.slot == Slot::dweight && task.micro_batch == 0 &&
                                 op.kind == OpKind::linear_backward_weight && op.row_begin == 0 &&
                                 op.as<GemmSize>().sum == GradientSum::begins_step;
        ASSERT_TRUE(is_access(touch.kind, begins_step ? Access::write : access_of(op, touch.slot)))
            << spec_of(op.kind).name << " " << name_of(touch.slot);
      }
      if (op.kind == OpKind::join) continue;  // touches nothing
      for (const SlotSpec& spec : spec_of(op.kind)) {
        if (!op.has(spec.slot)) continue;
        ASSERT_EQ(touched[spec.slot], elements_of(plan, op, spec, held_rows))
            << spec_of(op.kind).name << " " << name_of(spec.slot);
      }
    }
  }
}

// Every so many layouts of all are a test, so that shards of them can run at the same time.
constexpr size_t num_parts = 8;
class PartOfLayouts : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(All, PartOfLayouts, testing::Range<size_t>(0, num_parts));

// GoogleTest's trace names layout and rank.
TEST_P(PartOfLayouts, AreSoundInEveryStep) {
  const std::vector<SmallModel> all = layouts();
  for (size_t i = GetParam(); i < all.size(); i += num_parts) {
    const Config config = resolved_config(all[i]);
    for (const int64_t rank : ranks_that_differ(all[i])) {
      SCOPED_TRACE(name_of(all[i]) + ", rank " + std::to_string(rank));
      const Plan plan = make_plan(config, all[i].ranks(), rank);
      expect_operations_of_the_table(plan);
      expect_sound_data_flow(plan);
      expect_waits_for_signals_of_other_queues(plan);
      expect_programs_partition_operations(plan);
      if (HasFailure()) return;  // the others would say the same
    }
  }
}

// GELU is formed with the linear layer before it, and what it costs stays the same.
TEST(Operations, AGpuFusesGelu) {
  SmallModel m;
  m.compute = "bf16";
  m.device = "host";
  const auto count = [](const Plan& plan, OpKind kind) {
    return std::count_if(plan.ops.begin(), plan.ops.end(),
                         [kind](const Op& op) { return op.kind == kind; });
  };
  const Plan host = make_plan(resolved_config(m), 1, 0);
  m.device = "cuda";
  const Plan gpu = make_plan(resolved_config(m), 1, 0);
  EXPECT_EQ(count(host, OpKind::linear_gelu_forward), 0);
  EXPECT_EQ(count(gpu, OpKind::linear_gelu_forward), count(host, OpKind::gelu_forward));
  EXPECT_EQ(count(gpu, OpKind::linear_gelu_backward_input), count(host, OpKind::gelu_backward));
  EXPECT_EQ(count(gpu, OpKind::gelu_forward) + count(gpu, OpKind::gelu_backward), 0);
  EXPECT_EQ(gpu.costs.model_flops, host.costs.model_flops);
  m.recompute = "selective";  // forms the GELU again alone
  const Plan selective = make_plan(resolved_config(m), 1, 0);
  EXPECT_EQ(count(selective, OpKind::gelu_forward), m.layers);
  m.family = "llama";
  m.recompute = "none";
  EXPECT_EQ(count(make_plan(resolved_config(m), 1, 0), OpKind::linear_gelu_forward), 0);
}

// A sum of the residual stream is formed by the norm that follows. The last sum of a stage is sent,
// or, on the last stage, followed by tokens that are loaded, before there is a norm.
TEST(Operations, AGpuFormsResidualSumsInNorms) {
  SmallModel m;
  m.compute = "bf16";
  m.layers = 4;
  const auto fused = [](const Plan& plan, ProgramKind kind) {
    int64_t in_norms = 0, apart = 0;
    for (const Program& program : plan.programs) {
      if (program.kind != kind) continue;
      for (int32_t i = program.first; i < program.last; ++i) {
        const Op& op = plan.ops[static_cast<size_t>(i)];
        in_norms += op.has(Slot::branch) && op.kind != OpKind::residual_forward ? 1 : 0;
        apart += op.kind == OpKind::residual_forward ? 1 : 0;
      }
    }
    return std::pair<int64_t, int64_t>(in_norms, apart);
  };
  using Counts = std::pair<int64_t, int64_t>;
  for (const char* family : {"gpt", "llama"}) {
    m.family = family;
    m.ffn = m.family == std::string("llama") ? 24 : 0;
    m.device = "host";
    EXPECT_EQ(fused(make_plan(resolved_config(m), 1, 0), ProgramKind::forward),
              Counts(0, 2 * m.layers));
    m.device = "cuda";
    EXPECT_EQ(fused(make_plan(resolved_config(m), 1, 0), ProgramKind::forward),
              Counts(2 * m.layers, 0));
  }
  // Recomputation forms those within a segment again; the segment's input is kept.
  for (const auto& [recompute, every, sums] :
       {std::tuple{"selective", 1, 0}, std::tuple{"full", 1, 1}, std::tuple{"full", 2, 3}}) {
    m.recompute = recompute;
    m.checkpoint_every = every;
    EXPECT_EQ(fused(make_plan(resolved_config(m), 1, 0), ProgramKind::backward),
              Counts(sums * m.layers / every, 0));
  }
  m.recompute = "none";
  m.pipeline_parallel = 2;
  EXPECT_EQ(fused(make_plan(resolved_config(m), 2, 0), ProgramKind::forward),
            Counts(m.layers - 1, 1));
  EXPECT_EQ(fused(make_plan(resolved_config(m), 2, 1), ProgramKind::forward),
            Counts(m.layers - 1, 1));
}

// Three of a layer's four gradients of biases are sums of what another operation forms; the loss is
// one pass over logits that this rank has in full.
TEST(Operations, AGpuSumsGradientsOfBiasesInPassing) {
  using Counts = std::array<int64_t, 3>;  // by GELU's gradient, by norms, beside weights
  const auto sums = [](const SmallModel& model) {
    Counts counts{};
    for (const Op& op : make_plan(resolved_config(model), model.ranks(), 0).ops) {
      counts[0] += op.kind == OpKind::linear_gelu_backward_input && op.has(Slot::dbias) ? 1 : 0;
      counts[1] += op.kind == OpKind::layernorm_backward && op.has(Slot::column_sums) ? 1 : 0;
      counts[2] += op.kind == OpKind::linear_backward_weight && op.has(Slot::dbias) ? 1 : 0;
    }
    return counts;
  };
  const auto losses = [](const SmallModel& model) {
    const Plan plan = make_plan(resolved_config(model), model.ranks(), 0);
    return std::count_if(plan.ops.begin(), plan.ops.end(),
                         [](const Op& op) { return op.kind == OpKind::cross_entropy; });
  };
  SmallModel m;
  m.compute = "bf16";
  m.layers = 4;
  m.device = "host";
  EXPECT_EQ(sums(m), (Counts{0, 0, 16}));
  EXPECT_EQ(losses(m), 0);
  m.device = "cuda";
  EXPECT_EQ(sums(m), (Counts{4, 8, 4}));
  EXPECT_EQ(losses(m), 1);
  SmallModel dropped = m, windows = m, split = m;
  dropped.dropout = 0.1;  // stands between a projection and the residual stream
  EXPECT_EQ(sums(dropped), (Counts{4, 0, 12}));
  windows.data_parallel = 2;  // of gradients: that of the next layer is closed
  windows.zero_stage = 3;
  EXPECT_EQ(sums(windows), (Counts{4, 4, 8}));
  split.tensor_parallel = 2;
  EXPECT_EQ(sums(split), (Counts{4, 8, 4}));
  EXPECT_EQ(losses(split), 0);
}

TEST(Operations, TheTableRefusesOthers) {
  const Operand x{0}, y{1};
  EXPECT_EQ(departure_from_spec(ops::copy(flat(4), x, y)), "");
  EXPECT_EQ(departure_from_spec(ops::copy(flat(4), x, {})), "copy: y is missing");
  Op op = ops::copy(flat(4), x, y);
  op.operands.set(Slot::bias, {2});
  EXPECT_EQ(departure_from_spec(op), "copy: bias is no operand of it");
  op = ops::copy(flat(4), x, y);
  op.size = RowSize{4};
  EXPECT_EQ(departure_from_spec(op), "copy: sizes of another group");
}

// The names stand in result files (region_head_loss).
TEST(Operations, RegionsAreNamed) {
  EXPECT_STREQ(name_of(Region::head_loss), "head_loss");
  EXPECT_STREQ(name_of(Region::optimizer), "optimizer");
  EXPECT_STREQ(name_of(Region::offload), "offload");
}

TEST(Operations, OperandsAreFoundByName) {
  Operands operands{{Slot::x, {3, 5}}, {Slot::bias, {}}};
  EXPECT_EQ(operands[Slot::x].offset, 5);
  EXPECT_FALSE(operands.has(Slot::bias));
  EXPECT_LT(operands[Slot::y].buffer, 0);
  operands.set(Slot::x, {4});
  operands.set(Slot::bias, {7});
  EXPECT_EQ(operands[Slot::x].buffer, 4);
  operands.set(Slot::x, {});
  EXPECT_FALSE(operands.has(Slot::x));
  EXPECT_EQ(operands.end() - operands.begin(), 1);
}

// The model of memory finds what it is there to find.
TEST(Operations, ReplayFindsBrokenPlans) {
  SmallModel m;
  m.data_parallel = 2;
  const Plan sound = make_plan(resolved_config(m), 2, 0);
  const auto complaints = [](const Plan& plan) {
    return join(MemoryModel(plan).replay_step(), "\n");
  };
  ASSERT_EQ(complaints(sound), "");
  const auto first_of = [](Plan& plan, OpKind kind) -> Op& {
    return *std::find_if(plan.ops.begin(), plan.ops.end(),
                         [kind](const Op& op) { return op.kind == kind; });
  };

  Plan unread = sound;  // a sum of squares that does not wait for the reduction
  for (Op& op : unread.ops)
    if (op.kind == OpKind::squared_norm) op.waits_for.clear();
  EXPECT_NE(complaints(unread).find("squared_norm"), std::string::npos);

  Plan not_zeroed = sound;
  first_of(not_zeroed, OpKind::fill_zero).as<ElementCount>().fixed -= 1;
  EXPECT_NE(complaints(not_zeroed).find("read before it is written"), std::string::npos);

  Plan overlapping = sound;  // dx of the backward pass laid over dfc
  const auto named = [&](const char* name) -> Buffer& {
    const auto found = std::find_if(overlapping.buffers.begin(), overlapping.buffers.end(),
                                    [name](const Buffer& b) { return b.name == name; });
    if (found == overlapping.buffers.end())
      throw std::runtime_error(std::string("no buffer ") + name);
    return *found;
  };
  named("activations::dx").offset = named("activations::dfc").offset;
  EXPECT_NE(complaints(overlapping).find("overwritten through"), std::string::npos);

  m.deterministic = true;  // sums of a norm beside the gathers of the gradient
  Plan unordered = make_plan(resolved_config(m), 2, 0);
  ASSERT_EQ(complaints(unordered), "");
  for (Op& op : unordered.ops)
    if (op.kind == OpKind::all_reduce && op.axis == Axis::shard) op.queue = QueueId::tensor;
  EXPECT_NE(complaints(unordered).find("does not wait for the collective before it"),
            std::string::npos);

  Plan overrun = sound;
  first_of(overrun, OpKind::linear_forward).as<GemmSize>().N += 1;
  EXPECT_NE(complaints(overrun).find("leaves the buffer"), std::string::npos);
}

}  // namespace
// Gradients in the type of the compute kernels that are summed in another: the trace shows under
// which layer they are added, the final norm and the head under L.
TEST(Operations, SumsOfGradientsNameTheirLayer) {
  SmallModel m;
  m.layers = 3;
  m.compute = "bf16";
  m.reduce = "bf16";
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  std::set<int32_t> layers;
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::convert) continue;
    const std::string& from = plan.buffers[static_cast<size_t>(op[Slot::x].buffer)].name;
    if (from.find("gradient_sum") != std::string::npos) layers.insert(op.layer);
  }
  EXPECT_EQ(layers, (std::set<int32_t>{-1, 0, 1, 2, 3}));
}

}  // namespace gptbench
