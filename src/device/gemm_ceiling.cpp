#include "device/gemm_ceiling.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/units.h"
#include "device/fill_array.h"
#include "plan/layout.h"
#include "plan/workspace.h"

namespace gptbench {

std::vector<GemmShape> gemms_of(const ModelShape& model, int64_t rows) {
  constexpr int64_t max_rows = 2048, max_columns = 8192;
  std::vector<GemmShape> gemms = {{rows, model.C, model.qkv(), model.L},
                                  {rows, model.H * model.D, model.C, model.L},
                                  {rows, model.C, model.fc(), model.L},
                                  {rows, model.F, model.C, model.L},
                                  {rows, model.C, model.V, 1}};
  for (GemmShape& gemm : gemms) {
    gemm.R = std::min(gemm.R, max_rows);
    gemm.K = std::min(gemm.K, max_columns);
    gemm.N = std::min(gemm.N, max_columns);
  }
  return gemms;
}

double measure_gemm_ceiling(Device& device, ComputeType compute,
                            const std::vector<GemmShape>& gemms, double budget_s) {
  const int64_t element = size_of(activation_type(compute));
  // Bytes of the largest, aligned as in an arena: a GPU selects its GEMMs for such addresses.
  int64_t x = 0, weight = 0, y = 0;
  for (const GemmShape& gemm : gemms) {
    x = std::max(x, round_up(gemm.R * gemm.K * element, buffer_alignment));
    weight = std::max(weight, round_up(gemm.N * gemm.K * element, buffer_alignment));
    y = std::max(y, round_up(gemm.R * gemm.N * element, buffer_alignment));
  }
  const int64_t bytes = x + weight + y + gemm_workspace_bytes;
  char* const memory = static_cast<char*>(device.allocate(bytes));
  if (memory == nullptr) return 0.0;
  char* const arrays = memory + gemm_workspace_bytes;
  const std::unique_ptr<Queue> queue = device.make_queue("ceiling");
  const KernelTable& kernels = device.kernels(compute);
  LinearForward linear{};
  linear.y = arrays;
  linear.x = arrays + y;
  linear.weight = arrays + y + x;
  linear.workspace = {memory, gemm_workspace_bytes};
  fill_random(device, *queue, compute, arrays + y, (x + weight) / element,
              activation_type(compute));

  std::vector<double> best_s(gemms.size(), std::numeric_limits<double>::infinity());
  const double end_s = now_s() + budget_s;
  for (int round = 0; round < 2 || now_s() < end_s; ++round) {
    for (size_t i = 0; i < gemms.size(); ++i) {
      const GemmShape& gemm = gemms[i];
      const double start_s = now_s();
      linear.R = gemm.R;
      linear.K = gemm.K;
      linear.N = gemm.N;
      kernels.linear_forward(*queue, linear);
      queue->synchronize();
      // The first round sets up the GEMM library.
      if (round > 0) best_s[i] = std::min(best_s[i], now_s() - start_s);
    }
  }
  device.release(memory, bytes);
  double flops = 0.0, time_s = 0.0;
  for (size_t i = 0; i < gemms.size(); ++i) {
    const GemmShape& gemm = gemms[i];
    flops += 2.0 * static_cast<double>(gemm.R * gemm.K) * static_cast<double>(gemm.N * gemm.count);
    time_s += best_s[i] * static_cast<double>(gemm.count);
  }
  return flops / time_s;
}

}  // namespace gptbench
