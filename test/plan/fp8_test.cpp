// What a plan in fp8 has beside that in bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fp8.h"
#include "base/units.h"
#include "configs.h"
#include "plan/describe.h"
#include "plan/extent.h"
#include "plan/replay.h"

namespace gptbench {
namespace {

SmallModel small(const char* device) {
  SmallModel m;
  m.layers = 3;
  m.hidden = 32;
  m.heads = 4;
  m.seq = 6;
  m.compute = "fp8";
  m.device = device;
  m.micro_batch = 2;
  m.global_batch = 6;
  return m;
}

Plan plan_of(const SmallModel& m, int64_t rank = 0) {
  return make_plan(resolved_config(m), m.ranks(), rank);
}

int64_t elements_of(const Plan& plan, const std::string& name) {
  for (const Buffer& buffer : plan.buffers)
    if (buffer.name == name) return buffer.elements;
  return -1;
}

// Conversions of matrices (they have no rows of a micro-batch) in programs of a kind.
int64_t conversions(const Plan& plan, ProgramKind kind, bool of_matrices) {
  int64_t count = 0;
  for (const Program& program : plan.programs)
    for (int32_t i = program.first; i < program.last && program.kind == kind; ++i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      count += op.kind == OpKind::fp8_quantize && (op.row_count == 0) == of_matrices ? 1 : 0;
    }
  return count;
}

// Operations of programs of a kind that make copies of what they assign.
int64_t made_in_passing(const Plan& plan, ProgramKind kind, OpKind op_kind) {
  int64_t count = 0;
  for (const Program& program : plan.programs)
    for (int32_t i = program.first; i < program.last && program.kind == kind; ++i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      count += op.kind == op_kind && op.has(Slot::fp8_scale) ? 1 : 0;
    }
  return count;
}

TEST(Fp8Plan, CopiesWhereParametersLieFlat) {
  SmallModel m = small("host");
  const Plan plan = plan_of(m);
  // 12 C^2 a layer, 256-byte aligned as they are.
  EXPECT_EQ(elements_of(plan, "parameters::fp8"), 3 * 12 * 32 * 32);
  EXPECT_EQ(elements_of(plan, "parameters::fp8.transposed"), -1);
  EXPECT_EQ(conversions(plan, ProgramKind::begin_step, true), 4 * 3);
  EXPECT_EQ(conversions(plan, ProgramKind::forward, true), 0);
  // x of attn_proj; backward again, and dy of all but fc. The others are made in passing.
  EXPECT_EQ(conversions(plan, ProgramKind::forward, false), 1 * 3);
  EXPECT_EQ(conversions(plan, ProgramKind::backward, false), 4 * 3);
  EXPECT_EQ(made_in_passing(plan, ProgramKind::forward, OpKind::layernorm_forward), 2 * 3);
  EXPECT_EQ(made_in_passing(plan, ProgramKind::forward, OpKind::gelu_forward), 1 * 3);
  EXPECT_EQ(made_in_passing(plan, ProgramKind::backward, OpKind::gelu_backward), 1 * 3);
  // What norm and activation make is the copy alone.
  for (const char* name : {"ln_1", "ln_2", "gelu"}) {
    EXPECT_EQ(elements_of(plan, std::string("activations::h.1.") + name), -1);
    EXPECT_EQ(elements_of(plan, std::string("activations::") + name), -1);
  }
  EXPECT_EQ(elements_of(plan, "activations::h.1.ln_1.fp8"), 12 * 32);
  EXPECT_EQ(elements_of(plan, "activations::h.1.gelu.fp8"), 12 * 128);
  EXPECT_EQ(elements_of(plan, "activations::h.1.attention"), 12 * 32);
  m.device = "cuda";
  const Plan on_gpu = plan_of(m);
  EXPECT_EQ(elements_of(on_gpu, "parameters::fp8.transposed"), 3 * 12 * 32 * 32);
  EXPECT_EQ(conversions(on_gpu, ProgramKind::begin_step, true), 4 * 3);
  // Rows of a transposed copy are padded to 16: 12 rows of the micro-batch.
  EXPECT_EQ(elements_of(on_gpu, "activations::fp8.attn_proj.x"), 12 * 32);
  EXPECT_EQ(elements_of(on_gpu, "activations::fp8.fc.x.transposed"), 16 * 32);
  EXPECT_EQ(elements_of(on_gpu, "activations::fp8.fc.dy.transposed"), 16 * 128);
}

// What an update of scales touches: a scale, an inverse, a largest magnitude and a history of each
// tensor, and one place in the history.
TEST(Fp8Plan, ExtentsOfTheUpdateOfScales) {
  SmallModel m = small("host");
  m.fp8_amax_history = 5;
  const Plan plan = plan_of(m);
  int64_t updates = 0;
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::fp8_update_scales) continue;
    ++updates;
    EXPECT_EQ(value_of(plan, op, Dim::history, 1), 5);
  }
  EXPECT_GT(updates, 0);
}

// Products of a GPU want multiples of 16, those of a host any size.
TEST(Fp8Plan, SizesThatProductsWant) {
  SmallModel m = small("host");
  m.hidden = 27;
  m.heads = 3;
  EXPECT_EQ(elements_of(plan_of(m), "activations::h.1.ln_1.fp8"), 12 * 27);
  m.device = "cuda";
  try {
    plan_of(m);
    FAIL() << "27 columns were accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("multiples of 16: model.hidden_size = 27"),
              std::string::npos)
        << e.what();
  }
}

// On GPUs the activation is kept transposed, as its weight's gradient wants it, beside a temporary
// copy for the product; where sequences are a multiple of 16, to which transposed rows are padded.
TEST(Fp8Plan, ActivationsAreTurnedWhereTheyAreMade) {
  SmallModel m = small("cuda");
  const auto transposes = [](const Plan& plan) {
    int64_t count = 0;
    for (const Op& op : plan.ops) count += op.kind == OpKind::fp8_transpose ? 1 : 0;
    return count;
  };
  for (const int64_t seq : {6, 16}) {
    m.seq = seq;
    const bool at_once = seq == 16;
    const Plan plan = plan_of(m);
    EXPECT_EQ(elements_of(plan, "activations::h.1.gelu.fp8"), 2 * seq * 128);
    EXPECT_EQ(elements_of(plan, "activations::fp8.mlp_proj.x"), at_once ? 2 * seq * 128 : -1);
    EXPECT_EQ(elements_of(plan, "activations::fp8.mlp_proj.x.transposed"), at_once ? -1 : 16 * 128);
    // x of qkv and fc, which travel as they are; that of attn_proj is turned as it is converted.
    EXPECT_EQ(transposes(plan), (at_once ? 2 : 3) * 3);
    EXPECT_EQ(conversions(plan, ProgramKind::backward, false), 4 * 3);
  }
}

// Its copies are all that is read, but for a bias, and for the gradient that GELU forms in place.
TEST(Fp8Plan, GradientBeforeTheActivation) {
  SmallModel m = small("cuda");
  EXPECT_EQ(elements_of(plan_of(m), "activations::dfc"), 12 * 128);
  m.family = "llama";
  const Plan plan = plan_of(m);
  EXPECT_EQ(elements_of(plan, "activations::dfc"), -1);
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::swiglu_backward) {
      EXPECT_FALSE(op.has(Slot::dx));
    }
  m.pipeline_parallel = 3;
  m.schedule = "zero_bubble";  // later products convert it again
  for (const Op& op : plan_of(m).ops)
    if (op.kind == OpKind::swiglu_backward) {
      EXPECT_TRUE(op.has(Slot::dx));
    }
}

TEST(Fp8Plan, CopiesWhereParametersPassThroughWindows) {
  SmallModel m = small("host");
  m.data_parallel = 2;
  m.zero_stage = 3;
  const Plan plan = plan_of(m);
  EXPECT_EQ(elements_of(plan, "parameters::fp8.layer"), 12 * 32 * 32);
  EXPECT_EQ(elements_of(plan, "parameters::fp8"), -1);
  EXPECT_EQ(conversions(plan, ProgramKind::begin_step, true), 0);
  EXPECT_EQ(conversions(plan, ProgramKind::forward, true), 4 * 3);
  EXPECT_EQ(conversions(plan, ProgramKind::backward, true), 4 * 3);

  // On GPUs backward reads transposed copies; each program makes what its products read.
  m.device = "cuda";
  const Plan on_gpu = plan_of(m);
  int64_t products = 0;
  for (const Program& program : on_gpu.programs) {
    std::set<std::pair<int, int64_t>> made;
    for (int32_t i = program.first; i < program.last; ++i) {
      const Op& op = on_gpu.ops[static_cast<size_t>(i)];
      for (const Slot slot : {Slot::fp8_copy, Slot::fp8_transposed})
        if (op.has(slot)) made.insert({op[slot].buffer, op[slot].offset});
      if (!op.has(Slot::left_scale) || !op.has(Slot::weight)) continue;
      const Operand& weight = op[Slot::weight];
      EXPECT_EQ(made.count({weight.buffer, weight.offset}), 1u) << spec_of(op.kind).name;
      ++products;
    }
  }
  EXPECT_EQ(products, 2 * 4 * 3);  // of 4 linear layers, in 3 layers: forward, backward
}

// Products of the layers' matrices, three a pass; attention and head are not in fp8.
TEST(Fp8Plan, FlopsOfFp8Products) {
  for (const char* recompute : {"none", "full"}) {
    SmallModel m = small("host");
    m.recompute = recompute;
    const Plan plan = plan_of(m);
    const double rows = 6.0 * 6.0, product = 2.0 * rows * 12.0 * 32.0 * 32.0 * 3.0;
    // Recomputation leaves out the last product of each segment, 4 of 12 parts.
    const double again = recompute[0] == 'f' ? product * 8.0 / 12.0 : 0.0;
    EXPECT_DOUBLE_EQ(plan.costs.fp8_flops, 3.0 * product + again);
    EXPECT_LT(plan.costs.fp8_flops, plan.costs.model_flops + plan.costs.recompute_flops);
    EXPECT_DOUBLE_EQ(flops_by_convention(plan, stage_figures(plan)).at("exact_fp8"),
                     plan.costs.fp8_flops);
    m.compute = "bf16";
    const Plan other = plan_of(m);
    EXPECT_EQ(other.costs.fp8_flops, 0.0);
    EXPECT_EQ(flops_by_convention(other, stage_figures(other)).count("exact_fp8"), 0u);
    EXPECT_DOUBLE_EQ(other.costs.model_flops, plan.costs.model_flops);
    EXPECT_DOUBLE_EQ(other.costs.recompute_flops, plan.costs.recompute_flops);
  }
}

// One message along the tensor axis and one over data and context, of 12 amax a layer.
TEST(Fp8Plan, AmaxIsReducedOnceAStep) {
  SmallModel m = small("host");
  m.tensor_parallel = 2;
  m.context_parallel = 3;
  m.data_parallel = 2;
  m.pipeline_parallel = 3;
  const Plan plan = plan_of(m);
  std::map<Axis, int64_t> bytes;
  const auto add_maxima = [&](const Plan& from) {
    for (const Op& op : from.ops)
      if (is_message(op.kind) && op.as<MessageSize>().maximum)
        bytes[op.axis] += payload_bytes(op, 0);
  };
  add_maxima(plan);
  EXPECT_EQ(bytes, (std::map<Axis, int64_t>{{Axis::tensor, 12 * 4}, {Axis::zero, 12 * 4}}));
  m.context_parallel = 1;
  m.pipeline_parallel = 1;
  m.tensor_parallel = 1;
  const Plan replicas = plan_of(m);
  bytes.clear();
  add_maxima(replicas);
  EXPECT_EQ(bytes, (std::map<Axis, int64_t>{{Axis::data, 3 * 12 * 4}}));
}

// The first scales are those of the logical tensors, whatever the decomposition.
TEST(Fp8Plan, FirstScalesDoNotDependOnTheLayout) {
  const Plan one = plan_of(small("host"));
  std::map<std::string, double> expected;
  for (const Fp8Tensor& tensor : one.fp8.tensors) {
    expected[tensor.name] = tensor.expected_amax;
    EXPECT_EQ(tensor.type == DType::fp8_e5m2, tensor.name.find(".dy") != std::string::npos);
  }
  EXPECT_EQ(expected.size(), 36u);
  SmallModel m = small("host");
  m.tensor_parallel = 2;
  m.pipeline_parallel = 3;
  m.data_parallel = 2;
  m.zero_stage = 1;
  m.micro_batch = 1;
  size_t found = 0;
  for (int64_t rank = 0; rank < m.ranks(); ++rank)
    for (const Fp8Tensor& tensor : plan_of(m, rank).fp8.tensors) {
      EXPECT_EQ(tensor.expected_amax, expected.at(tensor.name)) << tensor.name;
      ++found;
    }
  EXPECT_EQ(found, 36u * 4u);
}

// The place in the history is counted on the device: a step on a GPU may be recorded and replayed.
TEST(Fp8Plan, StepsAreAlikeToADevice) {
  SmallModel m = small("cuda");
  EXPECT_EQ(replay_obstacle(plan_of(m)), "");
  const Plan plan = plan_of(m);
  EXPECT_EQ(plan.buffers.at(static_cast<size_t>(plan.buffer_index.corrections)).elements, 3);
}

TEST(Fp8Plan, SizesThatAGpuCannotMultiply) {
  SmallModel m = small("cuda");
  m.hidden = 40;
  EXPECT_THROW(plan_of(m), Error);
  m.device = "host";
  EXPECT_NO_THROW(plan_of(m));
  m = small("cuda");
  m.tensor_parallel = 4;  // 8 channels a rank
  EXPECT_THROW(plan_of(m), Error);
}

// Eight standard deviations of 0.02 or, behind a mean of values, of 0.02 sqrt(16); 256 / 20
// targets.
TEST(Fp8Plan, ExpectedMagnitudesByHand) {
  SmallModel m;
  m.compute = "fp8";
  m.hidden = 16;
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  const std::map<std::string, double> expected = {
      {"h.1.qkv.x", 8.0},  {"h.1.qkv.weight", 0.16}, {"h.1.attn_proj.x", 0.64},
      {"h.1.fc.x", 8.0},   {"h.1.mlp_proj.x", 0.64}, {"h.1.mlp_proj.weight", 0.08},
      {"h.1.qkv.dy", 12.8}};
  size_t found = 0;
  for (const Fp8Tensor& tensor : plan.fp8.tensors) {
    const auto entry = expected.find(tensor.name);
    if (entry == expected.end()) continue;
    ++found;
    EXPECT_DOUBLE_EQ(tensor.expected_amax, entry->second) << tensor.name;
  }
  EXPECT_EQ(found, expected.size());
}

// Behind SwiGLU: a product of two numbers with a deviation of 0.02 sqrt(4096) = 1.28, whose tails
// are three times as long.
TEST(Fp8Plan, ExpectedMagnitudeBehindSwigluByHand) {
  SmallModel m;
  m.compute = "fp8";
  m.family = "llama";
  m.hidden = 4096;
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  size_t found = 0;
  for (const Fp8Tensor& tensor : plan.fp8.tensors) {
    if (tensor.name != "h.1.mlp_proj.x") continue;
    ++found;
    EXPECT_DOUBLE_EQ(tensor.expected_amax, 8.0 * 1.28 * 3.0 * 1.28);
  }
  EXPECT_EQ(found, 1u);
}

}  // namespace
}  // namespace gptbench
