#include "device/gemm_ceiling.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/units.h"
#include "device/fill_array.h"
#include "plan/layout.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

// Bytes of the largest of each array, aligned as in an arena: a GPU selects its GEMMs for such
// addresses.
struct ArrayBytes {
  int64_t x = 0, weight = 0, y = 0;
  int64_t sum() const { return x + weight + y + gemm_workspace_bytes; }
};

ArrayBytes array_bytes(ComputeType compute, const std::vector<GemmShape>& gemms) {
  const int64_t element = size_of(activation_type(compute));
  ArrayBytes most;
  for (const GemmShape& gemm : gemms) {
    most.x = std::max(most.x, round_up(gemm.R * gemm.K * element, buffer_alignment));
    most.weight = std::max(most.weight, round_up(gemm.N * gemm.K * element, buffer_alignment));
    most.y = std::max(most.y, round_up(gemm.R * gemm.N * element, buffer_alignment));
  }
  return most;
}

}  // namespace

std::vector<GemmShape> gemms_of(const ModelShape& model, int64_t rows) {
  constexpr int64_t max_rows = 16384;
  const int64_t R = std::min(rows, max_rows);
  return {{R, model.C, model.qkv(), model.L},
          {R, model.H * model.D, model.C, model.L},
          {R, model.C, model.fc(), model.L},
          {R, model.F, model.C, model.L},
          {R, model.C, model.V, 1}};
}

int64_t ceiling_bytes(ComputeType compute, const std::vector<GemmShape>& gemms) {
  return array_bytes(compute, gemms).sum();
}

double measure_gemm_ceiling(Device& device, ComputeType compute,
                            const std::vector<GemmShape>& gemms, double budget_s) {
  const ArrayBytes most = array_bytes(compute, gemms);
  char* const memory = static_cast<char*>(device.allocate(most.sum()));
  if (memory == nullptr) return 0.0;
  char* const arrays = memory + gemm_workspace_bytes;
  const std::unique_ptr<Queue> queue = device.make_queue("ceiling");
  const KernelTable& kernels = device.kernels(compute);
  LinearForward linear{};
  linear.y = arrays;
  linear.x = arrays + most.y;
  linear.weight = arrays + most.y + most.x;
  linear.workspace = {memory, gemm_workspace_bytes};
  const DType type = activation_type(compute);
  fill_random(device, *queue, compute, arrays + most.y, (most.x + most.weight) / size_of(type),
              type);

  const auto time_of = [&](const GemmShape& gemm) {
    const double start_s = now_s();
    linear.R = gemm.R;
    linear.K = gemm.K;
    linear.N = gemm.N;
    kernels.linear_forward(*queue, linear);
    queue->synchronize();
    return now_s() - start_s;
  };
  for (const GemmShape& gemm : gemms) time_of(gemm);  // sets up the GEMM library
  std::vector<double> best_s(gemms.size(), std::numeric_limits<double>::infinity());
  std::vector<double> taken_s(gemms.size(), 0.0);
  const double share_s = budget_s / static_cast<double>(gemms.size());
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < gemms.size(); ++i) {
      if (taken_s[i] > 0.0 && taken_s[i] >= share_s) continue;
      const double each_s = time_of(gemms[i]);
      best_s[i] = std::min(best_s[i], each_s);
      taken_s[i] += each_s;
      again = true;
    }
  }
  device.release(memory, most.sum());
  double flops = 0.0, time_s = 0.0;
  for (size_t i = 0; i < gemms.size(); ++i) {
    const GemmShape& gemm = gemms[i];
    flops += 2.0 * static_cast<double>(gemm.R * gemm.K) * static_cast<double>(gemm.N * gemm.count);
    time_s += best_s[i] * static_cast<double>(gemm.count);
  }
  return flops / time_s;
}

}  // namespace gptbench
