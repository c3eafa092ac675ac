#include "verify/residuals.h"

#include <algorithm>
#include <cmath>

#include "base/dtype.h"
#include "base/error.h"
#include "base/larger.h"
#include "engine/engine.h"
#include "plan/lengths.h"

namespace gptbench {
namespace {

using Tensors = std::vector<std::vector<double>>;

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  GPTBENCH_CHECK(x.size() == y.size(), "run and reference have tensors of the same sizes");
  double sum = 0.0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(sum);
}

double unit_roundoff(DType type) {
  return type == DType::bf16  ? 0x1p-8
         : type == DType::f16 ? 0x1p-11
         : type == DType::f64 ? 0x1p-53
                              : 0x1p-24;
}

// Unit roundoff of the type that activations are rounded to.
double unit_roundoff(ComputeType compute) {
  return unit_roundoff(activation_type(compute));
}

double roundoff_of_statistics(ComputeType compute) {
  return unit_roundoff(compute == ComputeType::fp64 ? ComputeType::fp64 : ComputeType::fp32);
}

// Roundings along the longest chain from a weight to its gradient: each rounding adds an
// independent relative error of at most the unit roundoff u, so that errors grow as u sqrt(n)
// (Higham, Accuracy and Stability of Numerical Algorithms, section 2.8). In fp32 each term of an
// inner product is such a rounding; in bf16 and fp16 inner products accumulate in f32 and only
// stored activations round.
double chain_length(const ModelShape& s, ComputeType compute) {
  // Arrays written per layer, forward and backward; by head and embedding.
  const int64_t stored = 16 * s.L + 6;
  if (size_of(activation_type(compute)) == 2) return static_cast<double>(stored);
  const int64_t layer = s.C + 2 * s.T + s.H * s.D + s.C + s.F;  // qkv, attention, proj, fc, proj
  return static_cast<double>(2 * s.L * layer + s.V + s.C + stored);
}

// Sum of the squared roundoffs of conversions, where factors of GEMMs are fp8 or tf32. In fp8 the
// roundoff is 2^-4 in e4m3 and 2^-3 in e5m2. From a weight to its gradient, each layer converts x
// and W of four GEMMs forward, dy and W of four backward; the weight's gradient converts x and dy.
// The reference converts fp64 numbers to the same formats: where a number of the run is off by a
// rounding, its copy may be the neighbouring fp8 number, so that runs differ by at most the
// conversion itself.
//
// tf32 keeps 10 bits of the fraction of every factor of a linear layer, the head included: 2^-10
// where the other bits are truncated. The same factors are converted.
double conversions(const Plan& plan) {
  if (plan.config.precision.tf32) return static_cast<double>(16 * plan.shape.L + 6) * 0x1p-20;
  if (plan.fp8.tensors.empty()) return 0.0;
  const double e4m3 = static_cast<double>(12 * plan.shape.L + 1);
  const double e5m2 = static_cast<double>(4 * plan.shape.L + 1);
  return e4m3 * 0x1p-8 + e5m2 * 0x1p-6;
}

// Relative error of what comes of `roundings` roundings, and of the conversions.
double roundoff_of(const Plan& plan, ComputeType compute, double roundings) {
  const double u = unit_roundoff(compute);
  return std::sqrt(u * u * roundings + conversions(plan));
}

// Roundings of a gradient that is kept in a type no wider than that of activations: one as each
// micro-batch is added to the sum and, where micro-batches are reduced, one before; one as each
// rank is added to the sum over replicas, and one for a tied table of two stages.
double roundings_of_sums(const Plan& plan, ComputeType compute) {
  if (unit_roundoff(
          plan.representation(plan.has(Role::gradient) ? Role::gradient : Role::gradient_shard)
              .dtype) < unit_roundoff(compute))
    return 0.0;
  return 2.0 * static_cast<double>(plan.micro_batches.size()) +
         static_cast<double>(plan.grid.size_of(Axis::zero)) + 1.0;
}

// Roundoff alone leaves residuals of 0.1 to 0.6 in fp32 and 0.2 to 0.8 in bf16, whatever the shape
// of the model; in fp32 an error of one part in a hundred in one kernel leaves more than 40, in
// bf16, where that is within the roundoff, a missing term more than 4.4 (test/verify).
constexpr double threshold = 4.0;

// In fp8 u sqrt(n) is half of a gradient and more, of which roundoff leaves 0.1 to 0.3 (doc/
// verification.md): less can be allowed.
double threshold_of(const Plan& plan) {
  return plan.fp8.tensors.empty() ? threshold : 0.75;
}

// A tensor whose gradient is small beside the whole is held to this share of the whole's norm,
// since it inherits the roundoff of what it is formed from.
constexpr double share_of_whole = 0.01;

// Residual of the loss of one step. Roundings move each logit by u sqrt(n) of the logits' spread,
// sqrt(C) std in a fresh model, independently from token to token; the loss of a row, of the size
// of the loss itself, is rounded once in the type of statistics. Rows are added in f64, which
// rounds once for each token: replicas, whose rows are others', round differently.
double loss_residual(const Plan& plan, ComputeType compute, double loss, double reference) {
  const ModelShape& s = plan.shape;
  const double logits = std::sqrt(static_cast<double>(s.C)) * plan.config.model.init_std;
  const double tokens = static_cast<double>(targets_of_batch(plan, 0));
  const double roundoff =
      roundoff_of(plan, compute, chain_length(s, compute)) * logits / std::sqrt(tokens) +
      (roundoff_of_statistics(compute) + unit_roundoff(DType::f64) * std::sqrt(tokens)) * reference;
  return std::abs(loss - reference) / roundoff;
}

double norm_of_all(const Tensors& tensors) {
  double sum = 0.0;
  for (const std::vector<double>& tensor : tensors) sum += std::pow(norm(tensor), 2);
  return std::sqrt(sum);
}

// Largest residual over all tensors of the gradients, or of the weights' change in step 0. For the
// change, weights (of norms `weight_norms`) and both moments are each rounded once in the type of
// the master copy; for gradients, `weight_norms` is empty.
double tensor_residual(const Plan& plan, ComputeType compute, const Tensors& values,
                       const Tensors& reference, const std::vector<double>& weight_norms) {
  double roundings = chain_length(plan.shape, compute) + roundings_of_sums(plan, compute);
  if (!weight_norms.empty()) roundings += 2.0;
  const double scale = roundoff_of(plan, compute, roundings);
  const double of_weights = unit_roundoff(plan.representation(Role::master).dtype);
  const double least = share_of_whole * norm_of_all(reference);
  double residual = 0.0;
  for (size_t i = 0; i < reference.size(); ++i) {
    double roundoff = scale * (norm(reference[i]) + least);
    if (!weight_norms.empty()) roundoff += of_weights * weight_norms[i];
    residual = larger(residual, distance(values[i], reference[i]) / roundoff);
  }
  return residual;
}

}  // namespace

double norm(const std::vector<double>& x) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

std::vector<VerifyEntry> compare_with_reference(const Plan& plan, const TrainedSteps& run,
                                                const TrainedSteps& reference) {
  const ComputeType compute = compute_type(plan.config);
  double loss = 0.0;
  for (size_t step = 0; step < reference.losses.size(); ++step)
    loss = larger(loss, loss_residual(plan, compute, run.losses[step], reference.losses[step]));

  std::vector<VerifyEntry> entries;
  const auto entry = [&](const char* name, const char* formula, double value) {
    // A comparison with NaN is false, so it fails.
    const double largest = threshold_of(plan);
    entries.push_back({name, formula, value, largest, value <= largest});
  };
  entry("loss_against_reference",
        "max over 2 steps of |loss - ref| / (u sqrt(n C/tokens) std + (u_S + 2^-53 sqrt(tokens)) "
        "ref)",
        loss);
  entry("gradients_against_reference",
        "max over tensors of ||g - ref|| / (u sqrt(n) (||ref|| + ||ref of all|| / 100))",
        tensor_residual(plan, compute, run.gradients, reference.gradients, {}));
  entry("update_against_reference",
        "the same of the weights' change d in step 1, u_W ||weights|| added below",
        tensor_residual(plan, compute, run.changes, reference.changes, reference.weight_norms));
  return entries;
}

void keep_worst(std::vector<VerifyEntry>& entries, const std::vector<VerifyEntry>& others) {
  if (entries.empty()) entries = others;
  for (size_t i = 0; i < entries.size(); ++i)
    if (!std::isnan(entries[i].value) && !(others[i].value <= entries[i].value))
      entries[i] = others[i];
}

}  // namespace gptbench
