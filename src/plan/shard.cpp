#include "plan/shard.h"

#include "base/error.h"

namespace gptbench {

LocalTensor shard_of(const std::vector<LogicalTensor>& tensors, int tensor, int64_t tp_size,
                     int64_t tp_rank) {
  const LogicalTensor& global = tensors[static_cast<size_t>(tensor)];
  LocalTensor local;
  local.tensor = tensor;
  local.rows = global.rows;
  local.cols = global.cols;
  if (tp_size == 1 || global.tp_axis < 0) {
    local.replicated = tp_size > 1;
    local.counted = tp_rank == 0 || !local.replicated;
    local.segments = {{0, 0, global.rows}};
    return local;
  }
  if (global.tp_axis == 1) {
    GPTBENCH_CHECK(global.cols % tp_size == 0, global.name + ": columns divide by tensor_parallel");
    local.cols = global.cols / tp_size;
    local.global_col = tp_rank * local.cols;
    local.segments = {{0, 0, global.rows}};
    return local;
  }
  const std::vector<int64_t> blocks =
      global.tp_blocks.empty() ? std::vector<int64_t>{global.rows} : global.tp_blocks;
  int64_t global_row = 0;
  local.rows = 0;
  for (const int64_t block : blocks) {
    GPTBENCH_CHECK(block % tp_size == 0, global.name + ": rows divide by tensor_parallel");
    const int64_t share = block / tp_size;
    local.segments.push_back({local.rows, global_row + tp_rank * share, share});
    local.rows += share;
    global_row += block;
  }
  return local;
}

}  // namespace gptbench
