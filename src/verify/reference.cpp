#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/units.h"
#include "comm/agree.h"
#include "engine/gather.h"
#include "verify/reduced.h"
#include "verify/residuals.h"
#include "verify/verify.h"

namespace gptbench {
namespace {

constexpr int num_steps = 2;

using Tensors = std::vector<std::vector<double>>;

// A whole tensor; on rank 0 alone where `world` is given, which makes it collective.
std::vector<double> read_tensor(MpiWorld* world, Engine& engine, Role role, int tensor,
                                int64_t size) {
  return world == nullptr ? engine.read(role, tensor, 0, size)
                          : gather(*world, engine, role, tensor, 0, size);
}

// All of them.
Tensors read_all(MpiWorld* world, Engine& engine, const Plan& plan, Role role) {
  Tensors tensors;
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    tensors.push_back(
        read_tensor(world, engine, role, static_cast<int>(i), plan.tensors[i].size()));
  return tensors;
}

// Linux grants more memory than it has, and would end the run without a word. The reference takes
// what it plans, and a double each for the gradient and the change of every parameter.
void check_memory_of_reference(const Device& device, const Plan& plan) {
  int64_t need = total(plan.class_bytes);
  for (const LogicalTensor& tensor : plan.tensors)
    need += 2 * tensor.size() * static_cast<int64_t>(sizeof(double));
  const int64_t available = device.memory_offer().available_bytes;
  if (need > available)
    throw Error(Exit::out_of_memory,
                "the reference of the verification takes " + format_bytes(need) +
                    " on rank 0, whose node has " + format_bytes(available) +
                    " left: the reduced model has a layer for each pipeline stage; use fewer "
                    "stages, or run.verify = .false.");
}

// Trains for num_steps. Collective over `world` where given; tensors are then complete on rank 0.
TrainedSteps train(const Plan& plan, Device& device, const CommunicatorTable& communicators,
                   MpiWorld* world) {
  const std::unique_ptr<TokenSource> tokens =
      make_token_source(plan.config.data, static_cast<uint64_t>(plan.config.run.seed), plan.shape.T,
                        plan.shape.V_valid);
  Engine engine(plan, device, communicators, *tokens);
  const auto agree = [&](const auto& local) {
    if (world != nullptr)
      agreed(*world, local);
    else
      local();
  };
  agree([&] {
    if (!engine.allocate())
      throw Error(Exit::out_of_memory, "no memory for the reduced model of the verification (" +
                                           format_bytes(total(plan.class_bytes)) + ")");
  });
  engine.initialise_weights();
  // The second step is then one that was recorded, as most of the run's are.
  const auto all = [&](bool mine) { return world == nullptr ? mine : world->all(mine); };
  engine.replay_steps(false, all);
  TrainedSteps training;
  // These may be gigabytes: changes take the place of the weights.
  training.changes = read_all(world, engine, plan, Role::master);
  for (const std::vector<double>& weights : training.changes)
    training.weight_norms.push_back(norm(weights));
  for (int step = 0; step < num_steps; ++step) {
    StepResult result = engine.step(step, false);
    // A step that is skipped changes nothing but the loss scale: it is taken again.
    const PrecisionConfig& precision = plan.config.precision;
    while (result.skipped && std::isfinite(result.loss) && precision.loss_scale == 0.0 &&
           result.next_loss_scale >= precision.min_loss_scale)
      result = engine.step(step, false);
    training.losses.push_back(result.loss);
    if (step > 0) continue;
    training.gradients = read_all(world, engine, plan, Role::gradient);
    for (size_t i = 0; i < plan.tensors.size(); ++i) {
      const std::vector<double> after =
          read_tensor(world, engine, Role::master, static_cast<int>(i), plan.tensors[i].size());
      for (size_t k = 0; k < after.size(); ++k)
        training.changes[i][k] = after[k] - training.changes[i][k];
    }
  }
  // A rank that failed has computed on stale values, which say nothing about the arithmetic.
  agree([&] {
    const Failure& failure = engine.failure();
    if (failure.code() != Exit::ok)
      throw Error(failure.code(), "the reduced model of the verification: " + failure.reason() +
                                      "; leave it more memory, or use run.verify = .false.");
  });
  return training;
}

}  // namespace

ReferenceCheck check_against_reference(MpiWorld& world, Device& device,
                                       const CommunicatorTable& communicators, const Plan& full) {
  ReferenceCheck check;
  std::set<std::string> exercised;
  for (const Config& config : reduced_configs(full.config)) {
    const Plan plan = make_reduced_plan(config, world.size(), world.rank(), full.device);
    const TrainedSteps run = train(plan, device, communicators, &world);
    for (const Op& op : plan.ops) exercised.insert(spec_of(op.kind).name);
    std::optional<Error> missing_memory;
    try {
      if (world.rank() == 0) {
        const std::unique_ptr<Device> ref = make_host_device(DeviceKind::ref);
        const Plan ref_plan =
            make_reduced_plan(reference_config(config), 1, 0, device_traits(DeviceKind::ref));
        check_memory_of_reference(*ref, ref_plan);
        keep_worst(check.entries,
                   compare_with_reference(plan, run, train(ref_plan, *ref, {}, nullptr)));
      }
    } catch (const Error& error) {
      missing_memory = error;
    }
    world.barrier_asleep();  // the others, which would take processors from rank 0
    agreed(world, [&] {
      if (missing_memory) throw *missing_memory;
    });
  }
  std::set<std::string> missing;
  for (const Op& op : full.ops)
    if (exercised.count(spec_of(op.kind).name) == 0) missing.insert(spec_of(op.kind).name);
  check.kernels_not_verified.assign(missing.begin(), missing.end());
  return check;
}

}  // namespace gptbench
