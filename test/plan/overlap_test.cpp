// What hides the messages and transfers of whole plans: computing between start and wait.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "each_plan.h"
#include "plan/plan.h"
#include "tasks.h"

namespace gptbench {
namespace {

struct Issued {
  size_t task;
  int32_t op, program, micro_batch;
};

std::vector<Issued> issued_in_a_step(const Plan& plan) {
  std::vector<Issued> all;
  const std::vector<Task> tasks = tasks_of(plan);
  for (size_t t = 0; t < tasks.size(); ++t)
    for_each_op(plan.programs[static_cast<size_t>(tasks[t].program)],
                [&](int32_t i, int64_t /*first_row*/) {
                  all.push_back({t, i, tasks[t].program, tasks[t].micro_batch});
                });
  return all;
}

bool is_in(const Plan& plan, const Operand& operand, const char* prefix) {
  return operand.buffer >= 0 && plan.buffers[static_cast<size_t>(operand.buffer)].name.compare(
                                    0, std::string(prefix).size(), prefix) == 0;
}

// The sum of a norm over shards, which the update waits for.
bool is_norm(const Op& op) {
  return op.kind == OpKind::all_reduce && op.axis == Axis::shard;
}

// Computes, on the device or on the host, other than to prepare the gather of a shard.
bool computes(const Plan& plan, const Op& op) {
  if (op.queue == QueueId::host_kernels) return true;
  return op.queue == QueueId::compute && op.kind != OpKind::join &&
         !(op.kind == OpKind::convert && is_in(plan, op[Slot::y], "parameters::gathered"));
}

// Computing between message `start` and the first that waits for it; -1: nobody waits.
int hidden_behind(const Plan& plan, const std::vector<Issued>& issued, size_t start) {
  int hiding = 0;
  const Op& message = plan.ops[static_cast<size_t>(issued[start].op)];
  for (size_t k = start + 1; k < issued.size(); ++k) {
    const Op& op = plan.ops[static_cast<size_t>(issued[k].op)];
    if (issued[k].op == issued[start].op && issued[k].task != issued[start].task) return -1;
    for (const int32_t wait : op.waits_for)
      if (wait == issued[start].op &&
          event_of(message, issued[k].micro_batch) == event_of(message, issued[start].micro_batch))
        return hiding;
    if (computes(plan, op)) ++hiding;
  }
  return -1;
}

// At least one compute operation lies between the start of a message and the wait for it: of
// gradients that are reduced, of parameters and layer inputs that are gathered, of activations from
// other stages,
// of keys, values and their gradients that go round the context axis.
// There is nothing to hide behind
//   - for the only layer of a virtual stage, beside the head or not,
//   - for the first parameters or layer input of a program that begins with a layer,
//   - for parameters that are offloaded as well: their shards pass through two windows before,
//   - for the first layer of a segment of two that is repeated: it shares a window with the layer
//   in hand,
//   - for the first pass of a step, whose input all of the stage waits for.
TEST(Overlap, OfMessages) {
  std::map<std::string, int64_t> hidden;
  for_each_plan([&](const Plan& plan) {
    const std::vector<Issued> issued = issued_in_a_step(plan);
    const bool pairs = plan.config.memory.activation_checkpointing == Recompute::full &&
                       plan.config.memory.checkpoint_every > 1;
    const bool offloaded = contains(plan.config.parallel.offload, Offload::parameters);
    bool gathered = false;   // in this program
    bool first_pass = true;  // no pass has run
    bool begun = false;      // this program has computed
    for (size_t k = 0; k < issued.size(); ++k) {
      const Op& op = plan.ops[static_cast<size_t>(issued[k].op)];
      const Program& program = plan.programs[static_cast<size_t>(issued[k].program)];
      if (issued[k].op == program.first) gathered = begun = false;
      if (program.kind == ProgramKind::forward || program.kind == ProgramKind::backward)
        first_pass = false;
      if (computes(plan, op)) begun = true;
      const bool reduces = (op.kind == OpKind::reduce_scatter || op.kind == OpKind::all_reduce) &&
                           op.queue == QueueId::data && op.axis != Axis::embedding && !is_norm(op);
      const bool gathers =
          op.kind == OpKind::all_gather && is_in(plan, op[Slot::whole], "parameters::gathered");
      const bool receives = op.kind == OpKind::receive;
      const bool gathers_input =
          op.kind == OpKind::all_gather &&
          plan.buffers[static_cast<size_t>(op[Slot::whole].buffer)].name.find("whole_x.") !=
              std::string::npos;
      if (!reduces && !gathers && !gathers_input && !receives) continue;
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
      if ((reduces && one_unit) || (staged && first_pass) ||
          (gathers_input && !begun && !chunk.has_head))
        continue;
      if (op.kind == OpKind::all_reduce && op.axis == Axis::replica && hiding < 0) continue;
      ++hidden[gathers_input              ? "layer input"
               : op.axis == Axis::context ? "ring"
                                          : spec_of(op.kind).name];
      EXPECT_NE(hiding, 0) << spec_of(op.kind).name << " in " << gptbench::name_of(program.kind)
                           << " of micro-batch " << issued[k].micro_batch << ", operation "
                           << issued[k].op;
    }
  });
  for (const char* kind :
       {"all_reduce", "reduce_scatter", "all_gather", "layer input", "receive", "ring"})
    EXPECT_GT(hidden[kind], 0) << kind;
}

// The same of activations that leave the device and come back. There is nothing to hide behind for
// the first that a program of a pipeline's stage brings back, and for the last that one sends out
// where the next pass writes them at once.
TEST(Overlap, OfOffloadedActivations) {
  std::map<std::string, int64_t> hidden;
  for_each_plan([&](const Plan& plan) {
    if (!contains(plan.config.parallel.offload, Offload::activations)) return;
    const std::vector<Issued> issued = issued_in_a_step(plan);
    bool begun = false, last = false;  // this program has computed; nothing but transfers follows
    for (size_t k = 0; k < issued.size(); ++k) {
      const Op& op = plan.ops[static_cast<size_t>(issued[k].op)];
      const Program& program = plan.programs[static_cast<size_t>(issued[k].program)];
      if (issued[k].op == program.first) begun = false;
      if (op.queue == QueueId::compute) begun = true;
      if (!is_transfer(op.kind) || op.row_count == 0) continue;
      last = true;
      for (int32_t i = issued[k].op; i < program.last; ++i)
        last = last && plan.ops[static_cast<size_t>(i)].queue != QueueId::compute;
      if (plan.grid.pipeline > 1 && (op.kind == OpKind::load ? !begun : last)) continue;
      ++hidden[spec_of(op.kind).name];
      EXPECT_NE(hidden_behind(plan, issued, k), 0)
          << spec_of(op.kind).name << " in " << gptbench::name_of(program.kind)
          << " of micro-batch " << issued[k].micro_batch << ", operation " << issued[k].op;
    }
  });
  EXPECT_GT(hidden["load"], 0);
  EXPECT_GT(hidden["store"], 0);
}

// The host updates a unit while the gradient of the next one is transferred.
TEST(Overlap, OfHostUpdates) {
  int64_t hidden = 0;
  for_each_plan([&](const Plan& plan) {
    if (plan.config.parallel.offload_update != OffloadUpdate::host) return;
    const std::vector<Issued> issued = issued_in_a_step(plan);
    for (size_t k = 0; k < issued.size(); ++k) {
      const Op& op = plan.ops[static_cast<size_t>(issued[k].op)];
      EXPECT_EQ(op.kind == OpKind::adamw, op.queue == QueueId::host_kernels);
      if (op.kind != OpKind::store || !is_in(plan, op[Slot::y], "host::transfer.gradient."))
        continue;
      const bool first = op[Slot::x].offset == 0;
      EXPECT_EQ(hidden_behind(plan, issued, k) > 0, !first);
      hidden += first ? 0 : 1;
    }
  });
  EXPECT_GT(hidden, 0);
}

}  // namespace
}  // namespace gptbench
