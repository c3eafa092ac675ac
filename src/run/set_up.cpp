#include "run/set_up.h"

#include <limits>
#include <new>

#include "base/error.h"
#include "base/units.h"
#include "comm/agree.h"
#include "memory/budget.h"
#include "plan/replay.h"
#include "run/device_setup.h"

namespace gptbench {
namespace {

// What this rank cannot allocate; "" where it has all.
std::string missing_memory(Engine& engine, Device& device) {
  try {
    if (!engine.allocate()) {
      const MemoryClass refused = engine.arena().refused();
      const ClassBytes& planned = engine.resources().plan.class_bytes;
      return format_bytes(planned[static_cast<size_t>(refused)]) + " of class " + name_of(refused);
    }
    void* room = device.allocate(runtime_bytes_per_rank);
    device.release(room, runtime_bytes_per_rank);
    return room != nullptr
               ? ""
               : format_bytes(runtime_bytes_per_rank) + " that libraries take beside it";
  } catch (const std::bad_alloc&) {
    return "memory of the host";
  } catch (const Error& error) {  // of a queue
    if (error.code() != Exit::out_of_memory) throw;
    return std::string("its queues: ") + error.what();
  }
}

}  // namespace

Connections::Connections(MpiWorld& world, const Plan& plan) {
  std::array<bool, num_axes> used{};
  for (const Op& op : plan.ops)
    if (is_message(op.kind)) used[static_cast<size_t>(op.axis)] = true;
  for (size_t axis = 0; axis < used.size(); ++axis) {
    if (world.all(!used[axis])) continue;
    owned_[axis] = make_communicator(world, plan, static_cast<Axis>(axis));
    table_.by_axis[axis] = owned_[axis].get();
  }
}

std::string take_arena(MpiWorld& world, Engine& engine, Device& device) {
  const std::string who = "rank " + std::to_string(world.rank());
  std::string missing;
  agreed(world, [&] {
    try {
      missing = missing_memory(engine, device);
    } catch (const Error& error) {  // of the file of offloaded data
      throw Error(error.code(), who + ": " + error.what());
    }
  });
  if (world.all(missing.empty())) return "";
  if (!missing.empty()) missing = who + " cannot allocate " + missing;
  return first_text(world, missing);
}

void check_graphs(const Plan& plan) {
  const std::string obstacle = replay_obstacle(plan);
  if (plan.config.run.cuda_graph == CudaGraph::true_ && !obstacle.empty())
    throw AgreedError(Exit::usage, "run.cuda_graph = 'true' is not possible: " + obstacle +
                                       "; use cuda_graph = 'auto'");
}

void check_message_sizes(const Plan& plan) {
  if (plan.config.run.comm == CommLibrary::nccl) return;
  constexpr int64_t most = std::numeric_limits<int>::max();
  for (const Op& op : plan.ops) {
    if (!is_message(op.kind) || op.kind == OpKind::all_reduce) continue;
    const MessageSize& size = op.as<MessageSize>();
    const int64_t elements = payload_bytes(op, plan.micro_batches.rows) / size.element_bytes;
    if (elements <= most) continue;
    const std::string advice =
        size.count.columns > 0
            ? "a smaller batch.micro_batch_size, sequence parallelism, more tensor-parallel ranks"
            : "more tensor-parallel ranks, which divide parameters and gradients";
    throw Error(Exit::usage, std::string(spec_of(op.kind).name) + " along the " + name_of(op.axis) +
                                 " axis has " + std::to_string(elements) +
                                 " elements, and MPI counts " + std::to_string(most) + "; use " +
                                 advice + ", or run.comm = 'nccl'");
  }
}

void allow_graphs(MpiWorld& world, Engine& engine, const Plan& plan) {
  const bool required = plan.config.run.cuda_graph == CudaGraph::true_;
  const auto all = [&](bool mine) { return world.all(mine); };
  if (!engine.replay_steps(required, all))
    throw AgreedError(Exit::out_of_memory,
                      "no page-locked memory for the inputs of captured steps, " +
                          format_bytes(world.max(replayed_input_bytes(plan))) +
                          " per rank; use run.cuda_graph = 'false'");
}

std::string graph_note(const Engine& engine, const Plan& plan) {
  if (plan.config.run.device != DeviceKind::cuda) return "";
  std::string why = replay_obstacle(plan);
  if (plan.config.run.cuda_graph == CudaGraph::false_) why = "not requested";
  if (why.empty()) why = engine.graph().refusal();
  if (why.empty() && !engine.graph().recorded()) why = "there were too few steps";
  return "cuda_graph=" + (why.empty() ? "replayed from the third step on" : "none, " + why) + "\n";
}

}  // namespace gptbench
