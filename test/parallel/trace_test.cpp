// What overlaps on the list of operations overlaps in a run: between the issue of a message and the
// entry of the wait for it the rank has computed.
#include <gtest/gtest.h>

#include <map>

#include "combination.h"
#include "train.h"

namespace gptbench {
namespace {

struct Hidden {
  int64_t messages = 0, exposed = 0;
};

bool writes_to(const Plan& plan, const Op& op, const char* prefix) {
  return op.writes[0].buffer >= 0 &&
         plan.buffers[static_cast<size_t>(op.writes[0].buffer)].name.rfind(prefix, 0) == 0;
}

// Messages that computing is meant to hide: sums of gradients, gathered parameters, receives.
bool is_meant_to_hide(const Plan& plan, const Op& op) {
  if (op.kind == OpKind::receive) return true;
  if (op.kind == OpKind::all_gather) return writes_to(plan, op, "parameters::gathered");
  return (op.kind == OpKind::reduce_scatter || op.kind == OpKind::all_reduce) &&
         op.queue == QueueId::data && op.axis != Axis::embedding;
}

// Of the messages that somebody waited for, those behind which nothing was computed.
std::map<std::string, Hidden> hidden_in(const Plan& plan, const Trace& trace) {
  std::map<std::string, Hidden> result;
  std::vector<bool> seen(trace.events().size());
  for (const TraceWait& wait : trace.waits()) {
    const size_t at = static_cast<size_t>(wait.event);
    const TraceEvent& message = trace.events()[at];
    const Op& op = plan.ops[static_cast<size_t>(message.op)];
    EXPECT_LE(wait.begin_s, wait.end_s);
    if (!is_message(op.kind)) continue;
    // As the communicator saw it.
    EXPECT_GE(message.message.started_s, message.begin_s);
    EXPECT_GE(message.message.pending_s, message.message.started_s);
    EXPECT_GE(message.message.completed_s, message.message.pending_s);
    EXPECT_LE(message.message.completed_s, wait.end_s);
    if (seen[at] || !is_meant_to_hide(plan, op)) continue;
    seen[at] = true;
    int64_t computed = 0;
    for (size_t k = at + 1; k < trace.events().size(); ++k) {
      const TraceEvent& event = trace.events()[k];
      if (event.begin_s >= wait.begin_s) break;
      const Op& between = plan.ops[static_cast<size_t>(event.op)];
      if (between.queue != QueueId::compute || between.kind == OpKind::join) continue;
      EXPECT_GE(event.begin_s, message.end_s);
      EXPECT_LE(event.end_s, wait.begin_s);
      ++computed;
    }
    Hidden& hidden = result[info_of(op.kind).name];
    ++hidden.messages;
    if (computed == 0) ++hidden.exposed;
  }
  return result;
}

TEST(Trace, MessagesOverlapComputing) {
  MpiWorld world(nullptr, nullptr);
  struct Case {
    const char* text;
    const char* kind;
    // A step's first receive has nothing before it, nor has the stage of two layers and the head's
    // first gather in backward.
    int64_t exposed;
  };
  for (const Case& each : {Case{"dp2", "all_reduce", 0}, Case{"dp2 zero1", "reduce_scatter", 0},
                           Case{"dp2 zero3", "reduce_scatter", 0},
                           Case{"dp2 zero3", "all_gather", 0}, Case{"pp2", "receive", 1}}) {
    SCOPED_TRACE(each.text);
    const Config config = resolved_config(combination(each.text));
    const auto device = make_host_device(DeviceKind::ref);
    const Plan plan = make_plan(config, world.size(), world.rank(), {});
    const Connections connections = connect(world, plan);
    const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
    Engine engine(plan, *device, connections.table, *tokens);
    ASSERT_TRUE(engine.allocate());
    engine.initialise_weights();
    engine.trace_step(1);
    for (int step = 0; step < 3; ++step) engine.step(step, false);
    ASSERT_NE(engine.trace(), nullptr);
    size_t operations = 0;
    for_each_operation(plan, [&](const Task&, int32_t) { ++operations; });
    EXPECT_EQ(engine.trace()->events().size(), operations);
    std::map<std::string, Hidden> hidden = hidden_in(plan, *engine.trace());
    EXPECT_GT(hidden[each.kind].messages, 0);
    EXPECT_LE(hidden[each.kind].exposed, each.exposed);
  }
}

}  // namespace
}  // namespace gptbench
