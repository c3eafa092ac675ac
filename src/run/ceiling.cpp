#include "run/ceiling.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "device/gemm_ceiling.h"
#include "engine/resources.h"
#include "measure/system_info.h"
#include "memory/budget.h"
#include "record/steps.h"

namespace gptbench {
namespace {

constexpr double budget_s = 1.0;  // of each measurement, outside of the timed steps

std::vector<GemmShape> gemms_of(const Plan& plan) {
  return gptbench::gemms_of(model_shape(plan.config.model),
                            plan.shape.T * plan.config.batch.micro_batch_size);
}

}  // namespace

GemmCeiling ceiling_of(const std::vector<double>& measured, std::vector<double> earlier) {
  if (*std::min_element(measured.begin(), measured.end()) <= 0.0) return {};
  if (earlier.size() >= remembered_runs)
    earlier.erase(earlier.begin(), earlier.end() - (remembered_runs - 1));
  earlier.push_back(*std::max_element(measured.begin(), measured.end()));
  GemmCeiling ceiling{median(earlier), majority_deviation(earlier)};
  for (const double each : measured)
    ceiling.spread = std::max(ceiling.spread, std::abs(each / ceiling.tflops - 1.0));
  return ceiling;
}

double measure_ceiling(MpiWorld& world, Device& device, const Plan& plan) {
  const std::vector<GemmShape> gemms = gemms_of(plan);
  const ComputeType compute = compute_type(plan.config);
  // Linux grants memory that it does not have.
  const int64_t room = device.memory_offer().available_bytes / ranks_of_memory(world, device);
  const bool fits = world.all(ceiling_bytes(compute, gemms) <= room);
  const double flops = fits ? measure_gemm_ceiling(device, compute, gemms, budget_s) : 0.0;
  if (!world.all(flops > 0.0)) return 0.0;
  double sum = 0.0;
  for (const double each : world.gather(std::vector<double>{flops})) sum += each;
  return sum / static_cast<double>(world.size()) / 1e12;
}

std::string ceiling_key(const MpiWorld& world, const Device& device, const Plan& plan) {
  std::string key = system_info().cpu_model + "; " + device.info().description + "; " +
                    std::to_string(world.node_size()) + " ranks per node; " +
                    name_of(plan.config.precision.compute) + ", random";  // once of zeros
  for (const GemmShape& gemm : gemms_of(plan))
    key += printed(" %lldx%lldx%lld", static_cast<long long>(gemm.R),
                   static_cast<long long>(gemm.K), static_cast<long long>(gemm.N));
  std::replace(key.begin(), key.end(), '\t', ' ');
  std::replace(key.begin(), key.end(), '\n', ' ');
  return key;
}

}  // namespace gptbench
