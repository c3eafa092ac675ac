// A small model trained through plan and engine, on all ranks of a world or on this one alone.
#pragma once

#include <cmath>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "comm/mpi_world.h"
#include "configs.h"
#include "data/token_source.h"
#include "engine/engine.h"

namespace gptbench {

struct Trained {
  std::vector<double> losses, grad_norms;      // [step]
  std::vector<std::vector<double>> gradients;  // [tensor], of step 0
  uint64_t checksum = 0;                       // of the parameters after the last step
  std::vector<std::string> tensors;            // names
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

// The communicators that a plan wants.
struct Connections {
  std::vector<std::unique_ptr<Communicator>> owned;
  CommunicatorTable table;
};

// Collective.
inline Connections connect(MpiWorld& world, const Plan& plan) {
  Connections connections;
  for (const CommTotal& total : plan.comm) {
    connections.owned.push_back(world.make_communicator(plan.grid, total.axis));
    connections.table.by_axis[static_cast<size_t>(total.axis)] = connections.owned.back().get();
  }
  return connections;
}

// Collective where `world` is given, the model then being replicated on its ranks; else one rank.
inline Trained train(SmallModel model, int steps, MpiWorld* world) {
  const int64_t ranks = world != nullptr ? world->size() : 1;
  model.data_parallel = ranks;
  const Config config = resolved_config(model);
  const auto device =
      make_host_device(config.run.device == "ref" ? DeviceKind::ref : DeviceKind::host);
  const Plan plan =
      make_plan(config, ranks, world != nullptr ? world->rank() : 0, {device->num_threads()});
  const Connections connections = world != nullptr ? connect(*world, plan) : Connections();
  const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, *device, connections.table, *tokens);
  if (!engine.allocate()) throw std::bad_alloc();
  engine.initialise_weights();
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    const StepResult result = engine.step(step, false);
    trained.losses.push_back(result.loss);
    trained.grad_norms.push_back(result.grad_norm);
    if (step > 0) continue;
    for (size_t t = 0; t < plan.tensors.size(); ++t) {
      trained.gradients.push_back(
          engine.read(Role::gradient, static_cast<int>(t), 0, plan.tensors[t].size()));
      trained.tensors.push_back(plan.tensors[t].name);
    }
  }
  trained.checksum = engine.checksum();
  return trained;
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
