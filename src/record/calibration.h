// Results of gptbench --calibrate: rates of kernels and times of messages, while all ranks work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gptbench {

// One call of a kernel. Sizes: of a GEMM the result [rows, columns] and the inner dimension; of
// attention positions, head size and keys; of others the array [rows, columns], 0 inside.
// time_s is the mean over ranks of each rank's median.
struct KernelRate {
  std::string kernel, type;  // "linear_forward", "bf16"
  int64_t rows = 0, columns = 0, inner = 0;
  double flops = 0.0, bytes = 0.0;
  double time_s = 0.0;
  double spread = 0.0;  // of the calls of a rank: standard deviation over mean, mean over ranks
};

// One call of a collective, or one message between two ranks (op "send"), in groups of `ranks`
// ranks of which `per_node` are on one node; all groups of the axis at the same time. bytes: of the
// full array, `count` elements. time_s: of the slowest rank, median over calls. wrong: elements
// of all ranks that were not what they must be afterwards; -1 where nobody looked.
struct MessageRate {
  std::string axis, op, type, redop;  // redop "none" where nothing is reduced
  int64_t ranks = 1, per_node = 1;
  int64_t bytes = 0, count = 0;
  double time_s = 0.0;
  int64_t wrong = -1;

  int64_t nodes() const { return per_node > 0 ? (ranks + per_node - 1) / per_node : 0; }
};

struct Calibration {
  std::vector<KernelRate> kernels;
  std::vector<MessageRate> messages;
  std::string profile;  // text of the machine profile that follows from them
  bool empty() const { return kernels.empty() && messages.empty(); }
};

// Bus bandwidth over algorithm bandwidth (bytes of the full array per second), as nccl-tests define
// them (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md): 2 (n - 1) / n of an all-reduce,
// (n - 1) / n of a reduce-scatter or all-gather, 1 of a message from rank to rank. 0 for one rank.
double bus_factor(const std::string& op, int64_t ranks);

}  // namespace gptbench
