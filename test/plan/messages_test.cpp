// Messages of whole plans: what hides them, how many bytes they move, what they are kept in.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "decompositions.h"
#include "memory_model.h"
#include "plan/plan.h"

namespace gptbench {
namespace {

void for_each_plan(const std::function<void(const Plan&)>& check) {
  for (const SmallModel& model : all_decompositions()) {
    const Config config = resolved_config(model);
    for (const int64_t rank : ranks_that_differ(model)) {
      SCOPED_TRACE(name_of(model) + ", rank " + std::to_string(rank));
      check(make_plan(config, model.ranks(), rank, {}));
      if (testing::Test::HasFailure()) return;  // the others would say the same
    }
  }
}

struct Issued {
  size_t task;
  int32_t op;
};

std::vector<Issued> issued_in_a_step(const Plan& plan) {
  std::vector<Issued> all;
  for (size_t t = 0; t < plan.tasks.size(); ++t) {
    const Program& program = plan.programs[static_cast<size_t>(plan.tasks[t].program)];
    for (int32_t i = program.first; i < program.last; ++i) all.push_back({t, i});
  }
  return all;
}

// Compute operations between message `start` and the first that waits for it; -1: nobody waits.
int hidden_behind(const Plan& plan, const std::vector<Issued>& issued, size_t start) {
  int hiding = 0;
  for (size_t k = start + 1; k < issued.size(); ++k) {
    const Op& op = plan.ops[static_cast<size_t>(issued[k].op)];
    if (issued[k].op == issued[start].op && issued[k].task != issued[start].task) return -1;
    for (const Wait& wait : op.waits_for)
      if (wait.op == issued[start].op &&
          (!wait.same_slot ||
           plan.tasks[issued[k].task].slot == plan.tasks[issued[start].task].slot))
        return hiding;
    if (op.queue == QueueId::compute && op.kind != OpKind::join) ++hiding;
  }
  return -1;
}

bool is_in(const Plan& plan, const Operand& operand, const char* prefix) {
  return operand.buffer >= 0 && plan.buffers[static_cast<size_t>(operand.buffer)].name.compare(
                                    0, std::string(prefix).size(), prefix) == 0;
}

// At least one compute operation lies between the start of a message and the wait for it: of
// gradients that are reduced, of parameters that are gathered, of activations from other stages,
// of keys, values and their gradients that go round the context axis.
// There is nothing to hide behind
//   - for the only layer of a virtual stage, beside the head or not,
//   - for the first parameters of a program that begins with a layer,
//   - for parameters that are offloaded as well: their shards pass through two windows before,
//   - for the first layer of a segment of two that is repeated: it shares a window with the layer
//   in hand,
//   - for the first pass of a step, whose input all of the stage waits for.
TEST(Messages, OverlapComputing) {
  std::map<std::string, int64_t> hidden;
  for_each_plan([&](const Plan& plan) {
    const std::vector<Issued> issued = issued_in_a_step(plan);
    const bool pairs = plan.config.memory.activation_checkpointing == "full" &&
                       plan.config.memory.checkpoint_every > 1;
    const bool offloaded = plan.config.parallel.offload.find("parameters") != std::string::npos;
    bool gathered = false;   // in this program
    bool first_pass = true;  // no pass has run
    bool begun = false;      // this program has computed
    for (size_t k = 0; k < issued.size(); ++k) {
      const Op& op = plan.ops[static_cast<size_t>(issued[k].op)];
      const Program& program =
          plan.programs[static_cast<size_t>(plan.tasks[issued[k].task].program)];
      if (issued[k].op == program.first) gathered = begun = false;
      if (program.kind == ProgramKind::forward || program.kind == ProgramKind::backward)
        first_pass = false;
      if (op.queue == QueueId::compute) begun = true;
      const bool reduces = (op.kind == OpKind::reduce_scatter || op.kind == OpKind::all_reduce) &&
                           op.queue == QueueId::data && op.axis != Axis::embedding;
      const bool gathers =
          op.kind == OpKind::all_gather && is_in(plan, op.writes[0], "parameters::gathered");
      const bool receives = op.kind == OpKind::receive;
      if (!reduces && !gathers && !receives) continue;
      const int hiding = hidden_behind(plan, issued, k);
      const Chunk& chunk = plan.chunks[static_cast<size_t>(program.chunk)];
      const int64_t layers = chunk.end_layer - chunk.first_layer;
      const bool one_unit = !chunk.has_embedding && layers <= 1;
      if (gathers) {
        const bool begins_the_model =
            program.kind == ProgramKind::forward ? chunk.has_embedding : chunk.has_head;
        const bool first = !gathered && !begun && !begins_the_model;
        gathered = true;
        if (first || pairs || offloaded) continue;
      }
      const bool staged = receives && op.axis == Axis::pipeline;
      if ((reduces && one_unit) || (staged && first_pass)) continue;
      if (op.kind == OpKind::all_reduce && op.axis == Axis::replica && hiding < 0) continue;
      ++hidden[op.axis == Axis::context ? "ring" : info_of(op.kind).name];
      EXPECT_NE(hiding, 0) << info_of(op.kind).name << " in " << gptbench::name_of(program.kind)
                           << " of micro-batch " << plan.tasks[issued[k].task].micro_batch
                           << ", operation " << issued[k].op;
    }
  });
  for (const char* kind : {"all_reduce", "reduce_scatter", "all_gather", "receive", "ring"})
    EXPECT_GT(hidden[kind], 0) << kind;
}

// The same of activations that leave the device and come back. There is nothing to hide behind for
// the first that a program of a pipeline's stage brings back, and for the last that one sends out
// where the next pass writes them at once.
TEST(Messages, OffloadedActivationsOverlapComputing) {
  std::map<std::string, int64_t> hidden;
  for_each_plan([&](const Plan& plan) {
    if (plan.config.parallel.offload.find("activations") == std::string::npos) return;
    const std::vector<Issued> issued = issued_in_a_step(plan);
    bool begun = false, last = false;  // this program has computed; nothing but transfers follows
    for (size_t k = 0; k < issued.size(); ++k) {
      const Op& op = plan.ops[static_cast<size_t>(issued[k].op)];
      const Program& program =
          plan.programs[static_cast<size_t>(plan.tasks[issued[k].task].program)];
      if (issued[k].op == program.first) begun = false;
      if (op.queue == QueueId::compute) begun = true;
      if (!is_transfer(op.kind) || op.row_count == 0) continue;
      last = true;
      for (int32_t i = issued[k].op; i < program.last; ++i)
        last = last && plan.ops[static_cast<size_t>(i)].queue != QueueId::compute;
      if (plan.grid.pipeline > 1 && (op.kind == OpKind::load ? !begun : last)) continue;
      ++hidden[info_of(op.kind).name];
      EXPECT_NE(hidden_behind(plan, issued, k), 0)
          << info_of(op.kind).name << " in " << gptbench::name_of(program.kind)
          << " of micro-batch " << plan.tasks[issued[k].task].micro_batch << ", operation "
          << issued[k].op;
    }
  });
  EXPECT_GT(hidden["load"], 0);
  EXPECT_GT(hidden["store"], 0);
}

// Offloaded, a rank keeps two groups of layers on the device where it kept all groups of all
// micro-batches in flight; beside them stays what it kept before.
TEST(Messages, OffloadOfActivationsLowersTheDevicesMemory) {
  int64_t compared = 0;
  for (const SmallModel& model : all_decompositions()) {
    if (std::string(model.offload).find("activations") == std::string::npos) continue;
    Config config = resolved_config(model);
    const Plan plan = make_plan(config, model.ranks(), 0, {});
    config.parallel.offload = "none";
    const Plan without = make_plan(config, model.ranks(), 0, {});
    SCOPED_TRACE(name_of(model));
    int64_t away = 0, windows = 0;
    for (const Buffer& buffer : plan.buffers) {
      const bool stage = buffer.lifetime == Lifetime::micro_batch;
      if (stage && !is_on_device(buffer.memory_class)) away += buffer.bytes();
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

// Payload of a step in closed form. R rows (B T) of a replica, e bytes of an activation, w of a
// parameter as kept, s of a gradient; P elements of a stage, padding included.
std::map<std::pair<Axis, OpKind>, int64_t> expected_bytes(const Plan& plan) {
  std::map<std::pair<Axis, OpKind>, int64_t> bytes;
  const auto add = [&](Axis axis, OpKind kind, int64_t amount) {
    if (amount > 0) bytes[{axis, kind}] += amount;
  };
  const ParallelConfig& parallel = plan.config.parallel;
  const std::string& recompute = plan.config.memory.activation_checkpointing;
  const PrecisionConfig& precision = plan.config.precision;
  const auto size_of_type = [](const std::string& type) {
    return type == "bf16" || type == "fp16" ? 2 : 4;
  };
  const int64_t e = size_of_type(precision.compute), s = size_of_type(precision.reduce);
  const int64_t w = size_of_type(precision.parameters);
  const int64_t tp = plan.grid.tensor, C = plan.shape.C;
  const int64_t sharing = plan.grid.data * plan.grid.context;
  const std::vector<SequenceRange> micro_batches =
      micro_batches_of(plan.config.batch.global_batch_size, plan.grid.data, plan.at.data,
                       plan.config.batch.micro_batch_size);
  const int64_t m = static_cast<int64_t>(micro_batches.size());
  int64_t R = 0, layers = 0, segments = 0, embeddings = 0, heads = 0;
  for (const SequenceRange& range : micro_batches)
    R += range.count * (plan.shape.T / plan.grid.context);
  for (const Chunk& chunk : plan.chunks) {
    const int64_t n = chunk.end_layer - chunk.first_layer;
    layers += n;
    segments += (n + plan.config.memory.checkpoint_every - 1) / plan.config.memory.checkpoint_every;
    embeddings += chunk.has_embedding ? 1 : 0;
    heads += chunk.has_head ? 1 : 0;
  }

  // Tensor axis: a layer sums twice forward and twice backward (Shoeybi et al., arXiv:1909.08053);
  // what full recomputation repeats but for the last sum of a segment, whose result nobody reads.
  const int64_t sums =
      4 * layers + (recompute == "full" ? 2 * layers - segments : 0) + embeddings + heads;
  const bool split = parallel.pipeline_schedule == "zero_bubble" && plan.grid.pipeline > 1;
  if (tp > 1) {
    if (!parallel.sequence_parallel) {
      add(Axis::tensor, OpKind::all_reduce, sums * R * C * e);
    } else {
      add(Axis::tensor, OpKind::reduce_scatter, sums * R * C * e);
      // Inputs of column-parallel layers forward and again for their weight gradients, gradients at
      // the outputs of row-parallel ones (again where weight gradients are formed later).
      const int64_t gathers =
          (6 + (split ? 2 : 0) + (recompute == "full" ? 2 : 0)) * layers + embeddings + heads;
      add(Axis::tensor, OpKind::all_gather, gathers * R * C * e);
      // Replicated: two norms a layer and the final one; with biases their own and those of the two
      // row-parallel matrices.
      const bool each = sharing > 1 && (parallel.zero_stage >= 2 || plan.config.run.deterministic);
      int64_t replicated = 0;
      for (const Unit& unit : plan.space.units)
        if (unit.kind == UnitKind::layer || unit.kind == UnitKind::final_norm ||
            unit.kind == UnitKind::head)
          replicated += unit.replicated_end - unit.replicated_begin;
      const bool biases = plan.shape.family.biases;
      EXPECT_GE(replicated, (biases ? 6 : 2) * C * layers + (biases ? 2 : 1) * C * heads);
      add(Axis::tensor, OpKind::all_reduce, (each ? m : 1) * replicated * s);
    }
    add(Axis::tensor, OpKind::all_gather,
        heads * m * 3 * plan.micro_batch_rows * tp * 4);  // statistics of the loss
    add(Axis::model, OpKind::all_reduce, 8);
  } else if (plan.grid.pipeline > 1) {
    add(Axis::model, OpKind::all_reduce, 8);
  }

  // Ring of the context axis: keys and values forward, and where that is repeated; backward again,
  // with their gradients.
  const int64_t kv = 2 * plan.shape.H_kv * plan.shape.D / tp;
  add(Axis::context, OpKind::send,
      (plan.grid.context - 1) * R * kv *
          (((recompute == "full" ? 2 : 1) + 1) * layers * e + layers * 4));

  // Pipeline axis: one message each way a boundary and micro-batch.
  const int64_t chunks = static_cast<int64_t>(plan.chunks.size());
  add(Axis::pipeline, OpKind::send,
      (2 * chunks - heads - embeddings) * R * C * e / (parallel.sequence_parallel ? tp : 1));
  const bool shards = sharing > 1 && (parallel.zero_stage > 0 || plan.config.run.deterministic);
  const int unit = plan.space.find_unit(UnitKind::token_embedding);
  if (plan.grid.pipeline > 1 && unit >= 0 && plan.shape.family.shares_embedding()) {
    const Unit& wte = plan.space.units[static_cast<size_t>(unit)];
    add(Axis::embedding, OpKind::all_reduce, (shards ? wte.shard : wte.size()) * s);
  }

  if (plan.grid.size() > 1)
    add(Axis::world, OpKind::all_reduce, plan.shape.family.head == HeadKind::masked ? 24 : 16);
  if (sharing == 1) return bytes;
  const int64_t P = plan.space.elements;
  if (!shards) {
    add(plan.grid.context > 1 ? Axis::zero : Axis::data, OpKind::all_reduce, P * s);
    return bytes;
  }
  const bool each = parallel.zero_stage >= 2 || plan.config.run.deterministic;
  add(Axis::shard, OpKind::reduce_scatter, (each ? m : 1) * P * s);
  if (plan.grid.size_of(Axis::replica) > 1)
    add(Axis::replica, OpKind::all_reduce, (each ? m : 1) * plan.space.shard_elements * s);
  if (parallel.zero_stage == 0)
    add(Axis::shard, OpKind::all_gather, P * s);  // of the summed gradient
  if (parallel.zero_stage == 1 || parallel.zero_stage == 2)
    add(Axis::shard, OpKind::all_gather, P * w);
  if (parallel.zero_stage == 3) {
    // Forward all; backward what gradients of activations are formed with, which embeddings are
    // not.
    int64_t backward = 0;
    for (const Unit& each_unit : plan.space.units)
      if (each_unit.kind == UnitKind::layer || each_unit.kind == UnitKind::final_norm)
        backward += each_unit.size();
    add(Axis::shard, OpKind::all_gather, m * (P + backward) * w);
  }
  const int64_t entries = static_cast<int64_t>(plan.space.units.size()) * plan.space.num_shards;
  if (parallel.zero_stage > 0)
    add(Axis::shard, OpKind::all_reduce, plan.config.run.deterministic ? entries * 8 : 8);
  return bytes;
}

TEST(Messages, BytesFollowTheFormulas) {
  for_each_plan([](const Plan& plan) {
    std::map<std::pair<Axis, OpKind>, int64_t> expected = expected_bytes(plan);
    for (const CommTotal& total : plan.comm) {
      EXPECT_EQ(total.bytes, (expected[{total.axis, total.kind}]))
          << gptbench::name_of(total.axis) << " " << info_of(total.kind).name;
      expected.erase({total.axis, total.kind});
    }
    for (const auto& [which, bytes] : expected)
      ADD_FAILURE() << gptbench::name_of(which.first) << " " << info_of(which.second).name << ": "
                    << bytes << " bytes are not planned";
  });
}

// In stage 3, or with parameters offloaded, a rank holds, of gathered parameters, two layers, the
// embeddings and the final LayerNorm at most; the same of gradients from stage 2 on. Where types
// differ, one layer in the type of kernels.
TEST(Messages, WindowsHoldTwoLayers) {
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
    const bool offloaded = plan.config.parallel.offload.find("parameters") != std::string::npos;
    EXPECT_LE(gathered, stage == 3 || offloaded ? 2 * layer + others : 0);
    EXPECT_LE(gradients, stage >= 2 ? 2 * layer + others : 0);
    const PrecisionConfig& types = plan.config.precision;
    const int64_t windows =
        (types.parameters != types.compute ? 1 : 0) + (types.reduce != "fp32" ? 1 : 0);
    EXPECT_LE(converted, windows * (layer + others));
  });
  EXPECT_GT(seen, 0);
}

// Where the gradient of a local tensor is formed.
Operand gradient_of(const Plan& plan, size_t local) {
  const Unit& unit = plan.space.units[static_cast<size_t>(plan.space.unit_of[local])];
  const int64_t begin = plan.space.placements[local].begin;
  // Formed in a window of one layer where gradients are kept in another type than kernels add up.
  const bool sums = plan.config.precision.reduce != "fp32";
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

// Every tensor's gradient is added to in every micro-batch: once by its own layer, twice where the
// tied embedding is used at both ends (or once a chunk of the head's rows).
TEST(Messages, EveryGradientIsFormedInEveryMicroBatch) {
  for_each_plan([](const Plan& plan) {
    std::map<std::tuple<int, int64_t, int64_t, int64_t>, std::set<int32_t>>
        formed;  // buffer, offset, size, layer
    int32_t micro_batches = 0;
    for (const Task& task : plan.tasks)
      micro_batches = std::max(micro_batches, task.micro_batch + 1);
    for_each_operation(plan, [&](const Task& task, int32_t i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      if (op.kind != OpKind::linear_backward_weight && op.kind != OpKind::bias_backward &&
          op.kind != OpKind::layernorm_backward && op.kind != OpKind::rmsnorm_backward &&
          op.kind != OpKind::embedding_backward)
        return;
      for (const Touch& touch : touches_of(plan, op, {task.program, 0, 0, {0, 1}}))
        if (touch.access == Access::accumulate)
          formed[{touch.operand.buffer, touch.operand.offset, touch.elements, op.layer}].insert(
              task.micro_batch);
    });
    for (size_t t = 0; t < plan.space.tensors.size(); ++t) {
      const LogicalTensor& tensor = plan.tensors[static_cast<size_t>(plan.space.tensors[t].tensor)];
      const Operand at = gradient_of(plan, t);
      const bool head = tensor.layer < 0 && !plan.chunks.front().has_embedding;
      const std::tuple<int, int64_t, int64_t, int64_t> key{
          at.buffer, at.offset, plan.space.placements[t].size, head ? plan.shape.L : tensor.layer};
      EXPECT_EQ(static_cast<int32_t>(formed[key].size()), micro_batches) << tensor.name;
    }
  });
}

}  // namespace
}  // namespace gptbench
