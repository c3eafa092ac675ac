// Residuals of a training run against the reference: differences in units of the expected roundoff.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "record/record.h"

namespace gptbench {

// Results of the first training steps. Tensors are whole, [tensor][element].
struct TrainedSteps {
  std::vector<double> losses;                  // [step]
  std::vector<std::vector<double>> gradients;  // step 0, before clipping
  std::vector<std::vector<double>> changes;    // of the master weights in step 0
  std::vector<double> weight_norms;            // [tensor] of the master weights before step 0
};

// Euclidean norm.
double norm(const std::vector<double>& x);

// Three checks: losses of all steps; gradients and weight changes of step 0, tensor by tensor.
// `plan` is that of `run`.
std::vector<VerifyEntry> compare_with_reference(const Plan& plan, const TrainedSteps& run,
                                                const TrainedSteps& reference);

// Replaces each check of `entries` by the same check of `others`, another model, where that has the
// larger value; NaN is the largest. Empty `entries` become `others`.
void keep_worst(std::vector<VerifyEntry>& entries, const std::vector<VerifyEntry>& others);

}  // namespace gptbench
