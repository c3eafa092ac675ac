// The part of a logical tensor that one rank holds.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/grid.h"
#include "plan/model.h"

namespace gptbench {

// Consecutive rows of the global tensor.
struct RowSegment {
  int64_t local_row = 0, global_row = 0, rows = 0;
};

// Shard of one tensor: `rows` x `cols`, row-major, local; columns start at `global_col` of the
// global tensor. Example: attn.qkv.weight of C = 8, H = 4, D = 2 on tensor rank 1 of 2 holds rows
// 4-7 (q), 12-15 (k) and 20-23 (v) as its rows 0-3, 4-7 and 8-11.
struct LocalTensor {
  int tensor = -1;  // of Plan::tensors
  int64_t rows = 0, cols = 1;
  int64_t global_col = 0;
  std::vector<RowSegment> segments;
  bool replicated = false;  // the other tensor-parallel ranks hold the same
  // Whether norms and dumps count this copy: of a replicated tensor tensor rank 0's, of a tied
  // embedding the first stage's.
  bool counted = true;

  int64_t size() const { return rows * cols; }
};

LocalTensor shard_of(const std::vector<LogicalTensor>& tensors, int tensor, int64_t tp_size,
                     int64_t tp_rank);

}  // namespace gptbench
