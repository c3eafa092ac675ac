#include "run/set_up.h"

#include <limits>
#include <new>

#include "base/error.h"
#include "comm/agree.h"
#include "memory/budget.h"
#include "plan/replay.h"
#include "run/device_setup.h"

namespace gptbench {

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

bool take_arena(Engine& engine, Device& device) {
  try {
    if (!engine.allocate()) return false;
    void* room = device.allocate(runtime_bytes_per_rank);
    device.release(room, runtime_bytes_per_rank);
    return room != nullptr;
  } catch (const std::bad_alloc&) {
    return false;
  }
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
    const int64_t elements =
        payload_bytes(op, plan.micro_batches.rows) / op.as<MessageSize>().element_bytes;
    if (elements > most)
      throw Error(Exit::usage,
                  std::string(spec_of(op.kind).name) + " along the " + name_of(op.axis) +
                      " axis has " + std::to_string(elements) + " elements, and MPI counts " +
                      std::to_string(most) +
                      "; use a smaller batch.micro_batch_size, sequence parallelism, more "
                      "tensor-parallel ranks, or run.comm = 'nccl'");
  }
}

void allow_graphs(MpiWorld& world, Engine& engine, const Plan& plan) {
  if (plan.buffer_index.corrections < 0 || !replay_obstacle(plan).empty()) return;
  const bool required = plan.config.run.cuda_graph == CudaGraph::true_;
  const auto all = [&](bool mine) { return world.all(mine); };
  if (!engine.replay_steps(required, all))
    throw AgreedError(Exit::out_of_memory,
                      "no page-locked memory for the inputs of captured steps");
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
