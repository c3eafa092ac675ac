// Windows of whole plans, in which layers take turns: what of parameters, gradients and offloaded
// activations is on the device, and that every gradient is formed there.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "each_plan.h"
#include "plan/plan.h"
#include "tasks.h"
#include "touches.h"

namespace gptbench {
namespace {

// Offloaded, a rank keeps two groups of layers on the device where it kept all groups of all
// micro-batches in flight; beside them stays what it kept before.
TEST(Windows, OfOffloadedActivationsLowerTheDevicesMemory) {
  int64_t compared = 0;
  for (const SmallModel& model : all_decompositions()) {
    if (std::string(model.offload).find("activations") == std::string::npos) continue;
    Config config = resolved_config(model);
    const Plan plan = make_plan(config, model.ranks(), 0);
    config.parallel.offload.clear();
    const Plan without = make_plan(config, model.ranks(), 0);
    SCOPED_TRACE(name_of(model));
    int64_t away = 0, windows = 0;
    for (const Buffer& buffer : plan.buffers) {
      const bool is_away =
          buffer.lifetime == Lifetime::micro_batch && !is_on_device(buffer.memory_class);
      const bool is_counted =
          buffer.shares >= 0 && &plan.buffers[static_cast<size_t>(buffer.shares)] != &buffer;
      if (is_away && !is_counted) away += buffer.bytes();
      if (buffer.name.find("::window.") != std::string::npos) windows += buffer.bytes();
    }
    const auto activations = [](const Plan& p) {
      return p.class_bytes[static_cast<size_t>(MemoryClass::activations)];
    };
    // Without a pipeline the last two groups are the windows. Two groups that are never in flight
    // at once, or fewer, need as much on the device as their windows.
    const int64_t gone = plan.grid.pipeline > 1 ? away - windows : away;
    EXPECT_EQ(activations(plan), activations(without) - gone);
    if (plan.grid.pipeline > 1 && gone <= 0) continue;
    ++compared;
    EXPECT_LT(activations(plan), activations(without));
  }
  EXPECT_GT(compared, 0);
}

// In stage 3, or with parameters offloaded, a rank holds, of gathered parameters, two layers, the
// embeddings and the final LayerNorm at most; the same of gradients from stage 2 on. Where types
// differ, one layer in the type of kernels.
TEST(Windows, HoldTwoLayers) {
  int64_t seen = 0;
  for_each_plan([&](const Plan& plan) {
    int64_t layer = 0, others = 0, shard = 0;
    for (const Unit& unit : plan.space.units) {
      if (unit.kind == UnitKind::layer)
        layer = std::max(layer, unit.size());
      else
        others += unit.size();
      shard = std::max(shard, unit.shard);
    }
    int64_t gathered = 0, gradients = 0, converted = 0;
    for (const Buffer& buffer : plan.buffers) {
      if (buffer.name.find("::gathered") != std::string::npos) gathered += buffer.elements;
      if (buffer.name.find("::converted") != std::string::npos ||
          buffer.name.find("::gradient_sum") != std::string::npos)
        converted += buffer.elements;
      if (buffer.name.find("::gradient_window") != std::string::npos) gradients += buffer.elements;
    }
    const int64_t stage =
        plan.grid.data * plan.grid.context > 1 ? plan.config.parallel.zero_stage : 0;
    seen += gathered;
    const bool offloaded = contains(plan.config.parallel.offload, Offload::parameters);
    EXPECT_LE(gathered, stage == 3 || offloaded ? 2 * layer + others : 0);
    EXPECT_LE(gradients, stage >= 2 ? 2 * layer + others : 0);
    const PrecisionConfig& types = plan.config.precision;
    const int64_t windows =
        (types.parameters != types.compute ? 1 : 0) + (types.reduce != Precision::fp32 ? 1 : 0);
    EXPECT_LE(converted, windows * (layer + others));
  });
  EXPECT_GT(seen, 0);
}

// Where the gradient of a local tensor is formed.
Operand gradient_of(const Plan& plan, size_t local) {
  const Unit& unit = plan.space.units[static_cast<size_t>(plan.space.unit_of[local])];
  const int64_t begin = plan.space.placements[local].begin;
  // Formed in a window of one layer where gradients are kept in another type than kernels add up.
  const bool sums = plan.config.precision.reduce != Precision::fp32;
  if (!sums && plan.has(Role::gradient)) return {plan.representation(Role::gradient).buffer, begin};
  // Layers take turns with two windows.
  int turn = 0;
  for (const Unit& each : plan.space.units)
    if (each.kind == UnitKind::layer && each.begin < unit.begin && !sums) turn = 1 - turn;
  const std::string name = unit.kind == UnitKind::layer ? "layer_" + std::to_string(turn)
                           : unit.kind == UnitKind::token_embedding    ? "wte"
                           : unit.kind == UnitKind::position_embedding ? "wpe"
                           : unit.kind == UnitKind::head               ? "head"
                                                                       : "ln_f";
  for (size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[b].name ==
        (sums ? "gradients::gradient_sum." : "gradients::gradient_window.") + name)
      return {static_cast<int>(b), begin - unit.begin};
  return {};
}

// Whether layers take turns with the buffer; the flat gradient has a place for each.
bool is_window(const Plan& plan, int buffer) {
  return !plan.has(Role::gradient) || buffer != plan.representation(Role::gradient).buffer;
}

// Every tensor's gradient is formed or added to in every micro-batch: once by its own layer, twice
// where the tied embedding is used at both ends (or once a chunk of the head's rows).
TEST(Windows, EveryGradientIsFormedInEveryMicroBatch) {
  for_each_plan([](const Plan& plan) {
    std::map<std::tuple<int, int64_t, int64_t, int64_t>, std::set<int32_t>>
        formed;  // buffer, offset, size, layer
    for_each_issued(plan, [&](const Task& task, int32_t i, int64_t /*first_row*/) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      if (op.kind != OpKind::linear_backward_weight && op.kind != OpKind::bias_backward &&
          op.kind != OpKind::linear_gelu_backward_input && op.kind != OpKind::layernorm_backward &&
          op.kind != OpKind::rmsnorm_backward && op.kind != OpKind::embedding_backward)
        return;
      for (const Touch& touch : touches_of(plan, op, {task.program, 0, 0, {0, 1}})) {
        const int64_t layer = is_window(plan, touch.operand.buffer) ? op.layer : -1;
        if (touch.kind == TouchKind::accumulate || touch.slot == Slot::dweight)
          formed[{touch.operand.buffer, touch.operand.offset, touch.elements, layer}].insert(
              task.micro_batch);
      }
    });
    for (size_t t = 0; t < plan.space.tensors.size(); ++t) {
      const LogicalTensor& tensor = plan.tensors[static_cast<size_t>(plan.space.tensors[t].tensor)];
      const Operand at = gradient_of(plan, t);
      const bool head = tensor.layer < 0 && !plan.chunks.front().has_embedding;
      const int64_t layer = head ? plan.shape.L : tensor.layer;
      const std::tuple<int, int64_t, int64_t, int64_t> key{at.buffer, at.offset,
                                                           plan.space.placements[t].size,
                                                           is_window(plan, at.buffer) ? layer : -1};
      EXPECT_EQ(static_cast<int64_t>(formed[key].size()), plan.micro_batches.size()) << tensor.name;
    }
  });
}

}  // namespace
}  // namespace gptbench
