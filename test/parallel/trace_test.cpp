// What overlaps on the list of operations overlaps in a run: between the issue of a message and the
// entry of the wait for it the rank has computed. And where the time of a step is booked.
#include <gtest/gtest.h>

#include <map>

#include "base/clock.h"
#include "combination.h"
#include "counting_stopwatch.h"
#include "plan/tasks.h"
#include "train.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

struct Hidden {
  int64_t messages = 0, exposed = 0;
};

bool gathers_to(const Plan& plan, const Op& op, const char* prefix) {
  return plan.buffers[static_cast<size_t>(op[Slot::whole].buffer)].name.rfind(prefix, 0) == 0;
}

// Messages that computing is meant to hide: sums of gradients, gathered parameters, receives.
bool is_meant_to_hide(const Plan& plan, const Op& op) {
  if (op.kind == OpKind::receive) return true;
  if (op.kind == OpKind::all_gather) return gathers_to(plan, op, "parameters::gathered");
  return (op.kind == OpKind::reduce_scatter || op.kind == OpKind::all_reduce) &&
         op.queue == QueueId::data && op.axis != Axis::embedding;
}

// Messages that somebody waited for, and those among them behind which nothing was computed.
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
    Hidden& hidden = result[spec_of(op.kind).name];
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
    const Plan plan = make_plan(config, world.size(), world.rank());
    const Connections connections = connect(world, plan);
    const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
    Engine engine(plan, *device, connections.table, *tokens);
    ASSERT_TRUE(engine.allocate());
    engine.initialise_weights();
    engine.trace_step(1);
    for (int step = 0; step < 3; ++step) engine.step(step, false);
    ASSERT_NE(engine.trace(), nullptr);
    size_t operations = 0;
    for_each_operation(plan, [&](int32_t /*op*/, int64_t /*rows*/, int64_t times) {
      operations += static_cast<size_t>(times);
    });
    EXPECT_EQ(engine.trace()->events().size(), operations);
    std::map<std::string, Hidden> hidden = hidden_in(plan, *engine.trace());
    EXPECT_GT(hidden[each.kind].messages, 0);
    EXPECT_LE(hidden[each.kind].exposed, each.exposed);
  }
}

// Decompositions of two ranks with every kind of program, message and transfer.
const char* const timed[] = {"pp2 zero_bubble", "pp2 v2 selective",
                             "dp2 zero3 optimizer,parameters", "tp2 sp", "cp2"};

// What the engine is expected to book in a step.
struct Booked : StepTimes {
  ExposedTimes exposed_s{};
};

double sum_of(const ExposedTimes& exposed) {
  double sum = 0.0;
  for (const auto& kinds : exposed)
    for (const double seconds : kinds) sum += seconds;
  return sum;
}

double* total_of(StepTimes& times, ProgramKind kind) {
  switch (kind) {
    case ProgramKind::receive_forward:
    case ProgramKind::forward:
      return &times.forward_s;
    case ProgramKind::receive_backward:
    case ProgramKind::backward:
    case ProgramKind::backward_last:
    case ProgramKind::weight:
    case ProgramKind::weight_last:
      return &times.backward_s;
    case ProgramKind::begin_step:
    case ProgramKind::end_step:
      return &times.optimizer_s;
  }
  return nullptr;
}

// Where waiting for `op` is booked: receives with sends.
double& exposed_of(Booked& times, const Op& op) {
  if (is_transfer(op.kind)) return times.region_s[static_cast<size_t>(Region::offload)];
  const OpKind kind = op.kind == OpKind::receive ? OpKind::send : op.kind;
  return times.exposed_s[static_cast<size_t>(op.axis)][static_cast<size_t>(kind)];
}

// What the trace holds, added up as StepTimes are: all of computing, of messages and transfers
// without what was spent on driving them between operations, of programs from the beginning of
// their first operation to the end of their last.
Booked times_of(const Plan& plan, const Trace& trace) {
  Booked times;
  const std::vector<TraceEvent>& events = trace.events();
  for (size_t i = 0, first = 0; i < events.size(); ++i) {
    const Op& op = plan.ops[static_cast<size_t>(events[i].op)];
    double& booked = is_message(op.kind) || is_transfer(op.kind)
                         ? exposed_of(times, op)
                         : times.region_s[static_cast<size_t>(op.region)];
    booked += events[i].end_s - events[i].begin_s;
    const Task& task = events[i].task;
    if (i + 1 < events.size() && events[i + 1].task.program == task.program &&
        events[i + 1].task.micro_batch == task.micro_batch)
      continue;
    double* const program = total_of(times, plan.programs[static_cast<size_t>(task.program)].kind);
    if (program != nullptr) *program += events[i].end_s - events[first].begin_s;
    first = i + 1;
  }
  for (const TraceWait& wait : trace.waits()) {
    const size_t op = static_cast<size_t>(events[static_cast<size_t>(wait.event)].op);
    exposed_of(times, plan.ops[op]) += wait.end_s - wait.begin_s;
  }
  times.region_s[static_cast<size_t>(Region::communication)] += sum_of(times.exposed_s);
  return times;
}

// By the host's clock. Sums of a thousand terms of less than a second: rounding is below 1e-12 s.
TEST(StepTimes, AddUpToTheStep) {
  MpiWorld world(nullptr, nullptr);
  constexpr double rounding = 1e-12;
  for (const char* text : timed) {
    SCOPED_TRACE(text);
    const Config config = resolved_config(combination(text));
    const auto device = make_host_device(DeviceKind::ref);
    const Plan plan = make_plan(config, world.size(), world.rank());
    const Connections connections = connect(world, plan);
    const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
    Engine engine(plan, *device, connections.table, *tokens);
    ASSERT_TRUE(engine.allocate());
    engine.initialise_weights();
    engine.trace_step(1);
    engine.step(0, false);
    engine.timer().reset_exposed();
    const double before_s = now_s();
    const StepResult result = engine.step(1, false);
    EXPECT_LE(before_s, engine.trace()->origin_s());
    EXPECT_LE(engine.trace()->origin_s(), engine.trace()->events().front().begin_s);
    const StepTimes& times = engine.timer().times();
    const ExposedTimes& exposed_s = engine.timer().exposed_s();
    const Booked traced = times_of(plan, *engine.trace());

    const auto region = [](const StepTimes& of, Region r) {
      return of.region_s[static_cast<size_t>(r)];
    };
    double regions_s = 0.0;
    for (size_t r = 0; r < num_regions; ++r) {
      SCOPED_TRACE(name_of(static_cast<Region>(r)));
      regions_s += times.region_s[r];
      EXPECT_GE(times.region_s[r], traced.region_s[r] - rounding);
      if (r == static_cast<size_t>(Region::communication) ||
          r == static_cast<size_t>(Region::offload))
        continue;
      EXPECT_NEAR(times.region_s[r], traced.region_s[r], rounding);
    }
    EXPECT_GT(region(times, Region::communication), 0.0);
    EXPECT_EQ(region(times, Region::offload) > 0.0, !config.parallel.offload.empty());
    // Operations that only wait for messages (join) belong to the region, and to no message.
    const double joined_s = region(traced, Region::communication) - sum_of(traced.exposed_s);
    EXPECT_NEAR(sum_of(exposed_s) + joined_s, region(times, Region::communication), rounding);
    for (size_t axis = 0; axis < num_axes; ++axis)
      for (size_t kind = 0; kind < num_op_kinds; ++kind) {
        const double booked = exposed_s[axis][kind], least = traced.exposed_s[axis][kind];
        EXPECT_GE(booked, least - rounding)
            << name_of(static_cast<Axis>(axis)) << " " << spec_of(static_cast<OpKind>(kind)).name;
        EXPECT_EQ(booked > 0.0, least > 0.0);
      }
    EXPECT_GE(times.forward_s, traced.forward_s);
    EXPECT_GE(times.backward_s, traced.backward_s);
    EXPECT_GE(times.optimizer_s, traced.optimizer_s);
    // Parts of the step that do not overlap; what is spent in a region is spent in a program.
    const double programs_s = times.forward_s + times.backward_s + times.optimizer_s;
    EXPECT_LE(programs_s, result.time_s + rounding);
    EXPECT_LE(regions_s, programs_s + rounding);
  }
}

// What is booked by the device's marks are numbers of operations and waits.
class CountingDevice final : public WrappedDevice {
 public:
  CountingDevice() : WrappedDevice(make_host_device(DeviceKind::ref)) {}
  std::unique_ptr<Stopwatch> make_stopwatch() override {
    return std::make_unique<CountingStopwatch>();
  }
};

TEST(StepTimes, OfADeviceAreThoseOfItsMarks) {
  MpiWorld world(nullptr, nullptr);
  for (const char* text : timed) {
    SCOPED_TRACE(text);
    const Config config = resolved_config(combination(text));
    CountingDevice device;
    const Plan plan = make_plan(config, world.size(), world.rank());
    const Connections connections = connect(world, plan);
    const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
    Engine engine(plan, device, connections.table, *tokens);
    ASSERT_TRUE(engine.allocate());
    engine.initialise_weights();
    engine.step(0, false);
    engine.timer().reset_exposed();
    engine.step(1, false);

    Booked expected;
    for_each_task(plan, [&](const Task& task) {
      const Program& program = plan.programs[static_cast<size_t>(task.program)];
      double* const total = total_of(expected, program.kind);
      for_each_op(program, [&](int32_t i, int64_t /*first_row*/) {
        const Op& op = plan.ops[static_cast<size_t>(i)];
        if (op.queue != QueueId::compute) return;
        expected.region_s[static_cast<size_t>(op.region)] += 1.0;
        for (const int32_t wait : op.waits_for)
          exposed_of(expected, plan.ops[static_cast<size_t>(wait)]) += 1.0;
        if (total != nullptr) *total += 1.0 + static_cast<double>(op.waits_for.size());
      });
    });
    expected.region_s[static_cast<size_t>(Region::communication)] += sum_of(expected.exposed_s);
    const StepTimes& times = engine.timer().times();
    EXPECT_EQ(times.region_s, expected.region_s);
    EXPECT_EQ(engine.timer().exposed_s(), expected.exposed_s);
    EXPECT_EQ(times.forward_s, expected.forward_s);
    EXPECT_EQ(times.backward_s, expected.backward_s);
    EXPECT_EQ(times.optimizer_s, expected.optimizer_s);
  }
}

}  // namespace
}  // namespace gptbench
