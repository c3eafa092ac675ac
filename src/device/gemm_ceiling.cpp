#include "device/gemm_ceiling.h"

#include <algorithm>

#include "base/clock.h"
#include "plan/workspace.h"

namespace gptbench {

double measure_gemm_ceiling(Device& device, ComputeType compute, double budget_s) {
  constexpr int64_t R = 1024, K = 768, N = 3072;
  const int64_t element = size_of(activation_type(compute));
  const std::unique_ptr<Queue> queue = device.make_queue("ceiling");
  const int64_t bytes = (R * K + N * K + R * N) * element + gemm_workspace_bytes;
  char* memory = static_cast<char*>(device.allocate(bytes));
  if (memory == nullptr) return 0.0;
  char* x = memory + gemm_workspace_bytes;
  char* weight = x + R * K * element;
  char* y = weight + N * K * element;
  const LinearForward gemm{y, x, weight, nullptr, R, K, N, {memory, gemm_workspace_bytes}};
  const KernelTable& kernels = device.kernels(compute);

  kernels.linear_forward(*queue, gemm);  // set-up of the GEMM library, not counted
  queue->synchronize();
  double best_s = 1e30;
  const double end_s = now_s() + budget_s;
  do {
    const double start_s = now_s();
    kernels.linear_forward(*queue, gemm);
    queue->synchronize();
    best_s = std::min(best_s, now_s() - start_s);
  } while (now_s() < end_s);
  device.release(memory, bytes);
  return 2.0 * static_cast<double>(R) * static_cast<double>(K) * static_cast<double>(N) / best_s;
}

}  // namespace gptbench
