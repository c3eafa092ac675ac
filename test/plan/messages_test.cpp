// How many bytes the messages of whole plans move, in closed form.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "each_plan.h"
#include "plan/plan.h"

namespace gptbench {
namespace {

// Payload of a step in closed form. R rows (B T) of a replica, e bytes of an activation, w of a
// parameter as kept, v as ZeRO 3 gathers it, s of a gradient; P elements of a stage, padding
// included.
std::map<std::pair<Axis, OpKind>, int64_t> expected_bytes(const Plan& plan) {
  std::map<std::pair<Axis, OpKind>, int64_t> bytes;
  const auto add = [&](Axis axis, OpKind kind, int64_t amount) {
    if (amount > 0) bytes[{axis, kind}] += amount;
  };
  const ParallelConfig& parallel = plan.config.parallel;
  const bool recomputes = plan.config.memory.activation_checkpointing == Recompute::full;
  const PrecisionConfig& precision = plan.config.precision;
  const int64_t e = size_of(dtype_of(precision.compute)), s = size_of(dtype_of(precision.reduce));
  const int64_t w = size_of(dtype_of(precision.parameters));
  const int64_t v = precision.gather == Precision::auto_ ? e : size_of(dtype_of(precision.gather));
  const int64_t tp = plan.grid.tensor, C = plan.shape.C;
  const int64_t sharing = plan.grid.data * plan.grid.context;
  const int64_t m = plan.micro_batches.size();
  int64_t R = 0, layers = 0, segments = 0, arriving = 0, embeddings = 0, heads = 0;
  for (int64_t k = 0; k < m; ++k)
    R += plan.micro_batches[k].count * (plan.shape.T / plan.grid.context);
  for (const Chunk& chunk : plan.chunks) {
    const int64_t n = chunk.end_layer - chunk.first_layer;
    layers += n;
    segments += (n + plan.config.memory.checkpoint_every - 1) / plan.config.memory.checkpoint_every;
    arriving += n > 0 && !chunk.has_embedding ? 1 : 0;
    embeddings += chunk.has_embedding ? 1 : 0;
    heads += chunk.has_head ? 1 : 0;
  }

  // Tensor axis: a layer sums twice forward and twice backward (Shoeybi et al., arXiv:1909.08053);
  // what full recomputation repeats but for the last sum of a segment, whose result nobody reads.
  const int64_t sums = 4 * layers + (recomputes ? 2 * layers - segments : 0) + embeddings + heads;
  const bool split =
      parallel.pipeline_schedule == PipelineSchedule::zero_bubble && plan.grid.pipeline > 1;
  if (tp > 1) {
    if (!parallel.sequence_parallel) {
      add(Axis::tensor, OpKind::all_reduce, sums * R * C * e);
      // Inputs of segments, but for those that come from another stage.
      if (plan.config.memory.partition_checkpoints)
        add(Axis::tensor, OpKind::all_gather, (segments - arriving) * R * C * e);
    } else {
      add(Axis::tensor, OpKind::reduce_scatter, sums * R * C * e);
      // Inputs of column-parallel layers forward and again for their weight gradients, gradients at
      // the outputs of row-parallel ones (again where weight gradients are formed later).
      const int64_t gathers =
          (6 + (split ? 2 : 0) + (recomputes ? 2 : 0)) * layers + embeddings + heads;
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
        heads * m * 3 * plan.micro_batches.rows * tp * 4);  // statistics of the loss
    add(Axis::model, OpKind::all_reduce, 8);
  } else if (plan.grid.pipeline > 1) {
    add(Axis::model, OpKind::all_reduce, 8);
  }

  // Ring of the context axis: keys and values forward, and where that is repeated; backward again,
  // with their gradients.
  const int64_t kv = 2 * plan.shape.H_kv * plan.shape.D / tp;
  add(Axis::context, OpKind::send,
      (plan.grid.context - 1) * R * kv * (((recomputes ? 2 : 1) + 1) * layers * e + layers * 4));

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
    add(Axis::shard, OpKind::all_gather, m * (P + backward) * v);
  }
  const int64_t entries = static_cast<int64_t>(plan.space.units.size()) * plan.space.num_shards;
  add(Axis::shard, OpKind::all_reduce, plan.config.run.deterministic ? entries * 8 : 8);
  return bytes;
}

TEST(Messages, BytesFollowTheFormulas) {
  for_each_plan([](const Plan& plan) {
    std::map<std::pair<Axis, OpKind>, int64_t> expected = expected_bytes(plan);
    for (const CommTotal& total : plan.costs.comm) {
      EXPECT_EQ(total.bytes, (expected[{total.axis, total.kind}]))
          << gptbench::name_of(total.axis) << " " << spec_of(total.kind).name;
      expected.erase({total.axis, total.kind});
    }
    for (const auto& [which, bytes] : expected)
      ADD_FAILURE() << gptbench::name_of(which.first) << " " << spec_of(which.second).name << ": "
                    << bytes << " bytes are not planned";
  });
}

}  // namespace
}  // namespace gptbench
