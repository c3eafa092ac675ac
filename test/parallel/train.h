// A small model trained through plan and engine, on all ranks of a world or on this one alone.
#pragma once

#include <array>
#include <cmath>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "comm/message_totals.h"
#include "comm/mpi_world.h"
#include "configs.h"
#include "data/token_source.h"
#include "engine/engine.h"
#include "engine/gather.h"
#include "wrapped_device.h"

namespace gptbench {

struct Trained {
  std::vector<double> losses, grad_norms;      // [step]
  std::vector<std::vector<double>> gradients;  // [tensor], of step 0; on rank 0
  std::vector<std::vector<double>> weights;    // [tensor], after the last step; on rank 0
  int skipped = 0;                             // steps, for a gradient that is not finite
  uint64_t checksum = 0;                       // of this rank's parameters after the last step
  std::array<HashOfCopies, 3> copies;          // of these parameters
  std::vector<std::string> tensors;            // names
  // Where memory or messages of this rank were not what the plan says.
  std::vector<std::string> unplanned;
};

// Two layers of 32 channels, 12 positions, 50 tokens padded to 56.
inline SmallModel model_of(const char* device, const char* compute, int64_t micro_batch,
                           int64_t global_batch) {
  SmallModel m;
  m.hidden = 32;
  m.seq = 12;
  m.vocab = 50;
  m.device = device;
  m.compute = compute;
  m.micro_batch = micro_batch;
  m.global_batch = global_batch;
  return m;
}

// The communicators that the plans of all ranks want.
struct Connections {
  std::vector<std::unique_ptr<Communicator>> owned;
  CommunicatorTable table;
};

// Devices and communicators of models with device = 'cuda', in programs that are linked with that
// back end (test/gpu/gpu_for_tests.cpp); null in others, where the host computes what such a plan
// says.
struct GpuForTests {
  // `ranks_together`: for this rank of all, or for this one alone.
  std::unique_ptr<Device> (*make_device)(const Config& config, const MpiWorld* ranks_together);
  std::unique_ptr<Communicator> (*make_communicator)(MpiWorld&, const Plan&, Axis);
};
inline const GpuForTests* gpu_for_tests = nullptr;

inline bool is_on_gpu(const Config& config) {
  return config.run.device == DeviceKind::cuda && gpu_for_tests != nullptr;
}

inline std::unique_ptr<Device> device_of(const Config& config, const MpiWorld* world) {
  if (is_on_gpu(config)) return gpu_for_tests->make_device(config, world);
  return make_host_device(config.run.device == DeviceKind::ref ? DeviceKind::ref
                                                               : DeviceKind::host);
}

// Collective.
inline Connections connect(MpiWorld& world, const Plan& plan) {
  Connections connections;
  for (int axis = 0; axis < num_axes; ++axis) {
    if (plan.grid.size_of(static_cast<Axis>(axis)) == 1) continue;
    connections.owned.push_back(
        is_on_gpu(plan.config)
            ? gpu_for_tests->make_communicator(world, plan, static_cast<Axis>(axis))
            : world.make_communicator(plan.grid, static_cast<Axis>(axis)));
    connections.table.by_axis[static_cast<size_t>(axis)] = connections.owned.back().get();
  }
  return connections;
}

// Bytes and calls of every axis and kind, as an independent layer counted them since the last
// reset, against `totals` of a plan.
inline void compare_messages(const std::vector<CommTotal>& totals,
                             std::vector<std::string>& unplanned) {
  for (int axis = 0; axis < num_axes; ++axis)
    for (int kind = 0; kind < num_op_kinds; ++kind) {
      MessageTotal planned;
      for (const CommTotal& total : totals)
        if (static_cast<int>(total.axis) == axis && static_cast<int>(total.kind) == kind)
          planned = {total.messages, total.bytes};
      const MessageTotal counted =
          messages_counted(static_cast<Axis>(axis), static_cast<OpKind>(kind));
      if (counted.bytes != planned.bytes || counted.messages != planned.messages)
        unplanned.push_back(
            std::string(name_of(static_cast<Axis>(axis))) + " " +
            spec_of(static_cast<OpKind>(kind)).name + ": " + std::to_string(counted.bytes) +
            " bytes in " + std::to_string(counted.messages) + " messages, planned " +
            std::to_string(planned.bytes) + " in " + std::to_string(planned.messages));
    }
}

inline void compare_memory(const Plan& plan, const Arena& arena,
                           std::vector<std::string>& unplanned) {
  for (int c = 0; c < num_memory_classes; ++c) {
    const MemoryClass memory_class = static_cast<MemoryClass>(c);
    const int64_t planned =
        memory_class == MemoryClass::file ? 0 : plan.class_bytes[static_cast<size_t>(c)];
    if (arena.allocated_bytes(memory_class) != planned)
      unplanned.push_back(std::string(name_of(memory_class)) + ": " +
                          std::to_string(arena.allocated_bytes(memory_class)) + " bytes, planned " +
                          std::to_string(planned));
  }
}

// Counts the bytes that a device copies to and from host memory.
class CountingDevice final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  std::unique_ptr<Queue> make_queue(const std::string& name) override {
    auto queue = WrappedDevice::make_queue(name);
    if (name == name_of(QueueId::copy)) transfers_ = queue.get();
    return queue;
  }
  void copy(Queue& queue, void* to, const void* from, int64_t bytes) override {
    if (&queue == transfers_) bytes_ += bytes;
    WrappedDevice::copy(queue, to, from, bytes);
  }
  // Since the last call.
  int64_t transferred_bytes() { return std::exchange(bytes_, 0); }

 private:
  Queue* transfers_ = nullptr;
  int64_t bytes_ = 0;
};

// Collective. The loss of the batch of `step`, by forward passes alone, on rank 0.
inline double evaluate(MpiWorld& world, const Plan& plan, Engine& engine, int64_t step,
                       std::vector<std::string>& unplanned) {
  reset_message_counts();
  std::vector<double> loss = {engine.evaluate(step * plan.config.batch.global_batch_size)};
  compare_messages(plan.costs.evaluation_comm, unplanned);
  world.sum_on_first(loss);
  return loss[0];
}

// Collective where `world` is given, the model then being decomposed over its ranks; else one rank,
// whatever decomposition `model` names. Every other step of a decomposition is evaluated before: it
// must have that loss, and go on as one rank does, which evaluates nothing.
inline Trained train_decomposed(const SmallModel& model, int steps, MpiWorld* world) {
  Config config = resolved_config(model);
  config.output.directory = ".";
  if (world == nullptr) {
    config.parallel = {};
    config.parallel.data_parallel = 1;
    config.memory.activation_checkpointing = Recompute::none;
  }
  if (world != nullptr) world->barrier_asleep();  // while rank 0 compares what was trained before
  const int64_t ranks = world != nullptr ? world->size() : 1;
  std::unique_ptr<Device> device = device_of(config, world);
  CountingDevice* counting = nullptr;  // of transfers between the host's own two pools
  if (!is_on_gpu(config) && config.parallel.offload_target == OffloadTarget::host) {
    auto wrapped = std::make_unique<CountingDevice>(std::move(device));
    counting = wrapped.get();
    device = std::move(wrapped);
  }
  const Plan plan = make_plan(config, ranks, world != nullptr ? world->rank() : 0,
                              device_traits(config.run.device, device->info().num_threads));
  const Connections connections = world != nullptr ? connect(*world, plan) : Connections();
  const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, *device, connections.table, *tokens);
  if (!engine.allocate()) throw std::bad_alloc();
  engine.initialise_weights();
  const auto gathered = [&](Role role) {
    std::vector<std::vector<double>> all;
    for (size_t t = 0; t < plan.tensors.size(); ++t) {
      const int tensor = static_cast<int>(t);
      const int64_t size = plan.tensors[t].size();
      all.push_back(world != nullptr ? gather(*world, engine, role, tensor, 0, size)
                                     : engine.read(role, tensor, 0, size));
    }
    return all;
  };
  Trained trained;
  for (const LogicalTensor& tensor : plan.tensors) trained.tensors.push_back(tensor.name);
  compare_memory(plan, engine.arena(), trained.unplanned);
  for (int step = 0; step < steps; ++step) {
    const bool evaluates = world != nullptr && step % 2 == 1;
    const double evaluated =
        evaluates ? evaluate(*world, plan, engine, step, trained.unplanned) : 0.0;
    if (counting != nullptr) counting->transferred_bytes();
    reset_message_counts();
    const StepResult result = engine.step(step, false);
    if (evaluates && world->rank() == 0 && config.model.dropout == 0.0 &&
        !(std::abs(evaluated - result.loss) <= 1e-12 * result.loss))
      trained.unplanned.push_back("evaluated loss " + std::to_string(evaluated) + ", of the step " +
                                  std::to_string(result.loss));
    compare_messages(plan.costs.comm, trained.unplanned);
    const int64_t planned = plan.costs.loads.bytes + plan.costs.stores.bytes;
    const int64_t moved = counting != nullptr ? counting->transferred_bytes() : planned;
    if (moved != planned)
      trained.unplanned.push_back("offload: " + std::to_string(moved) + " bytes, planned " +
                                  std::to_string(planned));
    const auto differ = [step](const TransferTotal& executed, const TransferTotal& each) {
      return executed.count != each.count * (step + 1) || executed.bytes != each.bytes * (step + 1);
    };
    if (differ(engine.loads(), plan.costs.loads) || differ(engine.stores(), plan.costs.stores))
      trained.unplanned.push_back("loads or stores differ from the plan");
    trained.losses.push_back(result.loss);
    trained.grad_norms.push_back(result.grad_norm);
    trained.skipped += result.skipped ? 1 : 0;
    if (step == 0) trained.gradients = gathered(Role::gradient);
  }
  trained.weights = gathered(Role::working);
  trained.copies = hashes_of_copies(plan, engine.digest().tensors);
  trained.checksum = trained.copies.front().hash;
  return trained;
}

// The same with the model replicated on all ranks.
inline Trained train(SmallModel model, int steps, MpiWorld* world) {
  model.data_parallel = world != nullptr ? world->size() : 1;
  return train_decomposed(model, steps, world);
}

inline double norm(const std::vector<double>& x) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

inline double norm(const std::vector<std::vector<double>>& tensors) {
  std::vector<double> norms;
  for (const std::vector<double>& tensor : tensors) norms.push_back(norm(tensor));
  return norm(norms);
}

inline double distance(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> difference(x.size());
  for (size_t i = 0; i < x.size(); ++i) difference[i] = x[i] - y[i];
  return norm(difference);
}

// Largest |a - b| / |b| over the steps.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0.0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]) / std::abs(b[i]);
    if (!(difference <= largest)) largest = difference;  // NaN counts as largest
  }
  return largest;
}

}  // namespace gptbench
