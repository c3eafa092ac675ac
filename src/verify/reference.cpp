#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/units.h"
#include "engine/gather.h"

#include "verify/reduced.h"
#include "verify/verify.h"

namespace gptbench {
namespace {

constexpr int num_steps = 2;

struct Training {
  std::vector<double> losses;                  // [step]
  std::vector<std::vector<double>> gradients;  // [tensor], of step 0
};

// Trains for num_steps. Collective over `world` where given; gradients are then complete on rank 0.
Training train(const Plan& plan, Device& device, const CommunicatorTable& communicators,
               MpiWorld* world) {
  const std::unique_ptr<TokenSource> tokens =
      make_token_source(plan.config.data, static_cast<uint64_t>(plan.config.run.seed), plan.shape.T,
                        plan.shape.V_valid);
  Engine engine(plan, device, communicators, *tokens);
  if (!engine.allocate())
    throw Error(Exit::out_of_memory, "no memory for the reduced model of the verification (" +
                                         format_bytes(total(plan.class_bytes)) + ")");
  engine.initialise_weights();
  Training training;
  for (int step = 0; step < num_steps; ++step) {
    training.losses.push_back(engine.step(step, false).loss);
    if (step > 0) continue;
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      training.gradients.push_back(
          world == nullptr
              ? engine.read(Role::gradient, static_cast<int>(i), 0, plan.tensors[i].size())
              : gather(*world, engine, Role::gradient, static_cast<int>(i), 0,
                       plan.tensors[i].size()));
  }
  return training;
}

double norm(const std::vector<double>& x) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  GPTBENCH_CHECK(x.size() == y.size(), "run and reference have tensors of the same sizes");
  double sum = 0.0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(sum);
}

// The larger of two, and NaN where either is: std::max would drop a NaN, and a result that is none
// must not pass.
double larger(double a, double b) {
  return std::isnan(b) || b > a ? b : a;
}

// Unit roundoff of the type that activations are rounded to.
double unit_roundoff(ComputeType compute) {
  switch (compute) {
    case ComputeType::fp32:
      return 0x1p-24;
    case ComputeType::bf16:
      return 0x1p-8;
    case ComputeType::fp64:
      return 0x1p-53;
  }
  return 0.0;
}

// Roundings along the longest chain from a weight to its gradient: each rounding adds an
// independent relative error of at most the unit roundoff u, so that errors grow as u sqrt(n)
// (Higham, Accuracy and Stability of Numerical Algorithms, section 2.8). In fp32 each term of an
// inner product is such a rounding; in bf16 inner products accumulate in f32 and only stored
// activations round.
double chain_length(const ModelShape& s, ComputeType compute) {
  const int64_t stored =
      16 * s.L + 6;  // arrays written a layer, forward and backward; head and embedding
  if (compute == ComputeType::bf16) return static_cast<double>(stored);
  const int64_t layer = s.C + 2 * s.T + s.C + s.C + s.F;  // qkv, attention, proj, fc, proj
  return static_cast<double>(2 * s.L * layer + s.V + s.C + stored);
}

// HPL's threshold: a residual of order one is roundoff, a wrong result is orders of magnitude
// above.
constexpr double threshold = 16.0;

}  // namespace

ReferenceCheck check_against_reference(MpiWorld& world, Device& device,
                                       const CommunicatorTable& communicators, const Plan& full,
                                       const PlanOptions& options) {
  const Config config = reduced_config(full.config);
  const Plan plan = make_plan(config, world.size(), world.rank(), options);
  const Training run = train(plan, device, communicators, &world);

  ReferenceCheck check;
  if (world.rank() == 0) {
    const std::unique_ptr<Device> ref = make_host_device(DeviceKind::ref);
    const Plan ref_plan = make_plan(reference_config(config), 1, 0, {});
    const Training truth = train(ref_plan, *ref, {}, nullptr);

    const ComputeType compute = compute_type(config);
    const double scale = unit_roundoff(compute) * std::sqrt(chain_length(plan.shape, compute));
    double loss_residual = 0.0;
    for (int step = 0; step < num_steps; ++step)
      loss_residual = larger(loss_residual, std::abs(run.losses[static_cast<size_t>(step)] -
                                                     truth.losses[static_cast<size_t>(step)]) /
                                                (scale * truth.losses[static_cast<size_t>(step)]));
    double whole2 = 0.0;
    for (const std::vector<double>& gradient : truth.gradients)
      whole2 += std::pow(norm(gradient), 2);
    double gradient_residual = 0.0;
    for (size_t i = 0; i < truth.gradients.size(); ++i)
      gradient_residual = larger(gradient_residual, distance(run.gradients[i], truth.gradients[i]) /
                                                        (scale * std::sqrt(whole2)));

    const auto entry = [&](const char* name, const char* formula, double value) {
      // A comparison with NaN is false, so it fails.
      check.entries.push_back({name, formula, value, threshold, value <= threshold});
    };
    entry("loss_against_reference", "max over 2 steps of |loss - ref| / (u sqrt(n) ref)",
          loss_residual);
    entry("gradients_against_reference",
          "max over tensors of ||g - ref||_2 / (u sqrt(n) ||ref of all||_2)", gradient_residual);
  }

  std::set<std::string> exercised;
  for (const Op& op : plan.ops) exercised.insert(info_of(op.kind).name);
  std::set<std::string> missing;
  for (const Op& op : full.ops)
    if (exercised.count(info_of(op.kind).name) == 0) missing.insert(info_of(op.kind).name);
  check.kernels_not_verified.assign(missing.begin(), missing.end());
  return check;
}

}  // namespace gptbench
