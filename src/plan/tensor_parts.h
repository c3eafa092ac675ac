// Where the elements of a tensor lie in the memory of this rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace gptbench {

// `count` elements of a tensor, consecutive in the global tensor from element `first` on and in a
// copy from `at` on.
struct TensorPart {
  int64_t first = 0;
  Operand at;
  int64_t count = 0;
};

// Elements [first, first + count) of a local tensor, which lie in a copy from `at` on.
struct HeldElements {
  int64_t first = 0;
  Operand at;
  int64_t count = 0;  // 0: none
};

// What this rank holds of local tensor `local` in `copy`: all of it, or as far as its shard
// reaches.
HeldElements held_elements(const Plan& plan, const Representation& copy, size_t local);

// all: everything that the rank holds. once: ranks that hold the same elements share them evenly,
// so that each element of a tensor is visited by one rank.
enum class Visit { all, once };

// Calls visit(part) for the parts of local tensor `local` (FlatSpace::tensors) in `copy`.
template <class Visitor>
void for_each_part(const Plan& plan, const Representation& copy, size_t local, Visit which,
                   const Visitor& visit) {
  const LocalTensor& tensor = plan.space.tensors[local];
  if (which == Visit::once && !tensor.counted) return;
  const Unit& unit = plan.space.units[static_cast<size_t>(plan.space.unit_of[local])];
  // The flat elements of the unit that are visited.
  int64_t begin = unit.begin, end = unit.end;
  const bool is_flat = copy.extent == Extent::flat;
  if (!is_flat) {
    begin += plan.grid.place_of(plan.rank, Axis::shard) * unit.shard;
    end = begin + unit.shard;
  }
  const int64_t at_begin = copy.extent == Extent::shards ? unit.shard_begin : begin;
  int64_t from = begin;
  if (which == Visit::once) {
    const Axis same = is_flat ? Axis::zero : Axis::replica;
    const int64_t ranks = plan.grid.size_of(same), place = plan.grid.place_of(plan.rank, same);
    const int64_t size = end - begin;
    from = begin + size * place / ranks;
    end = begin + size * (place + 1) / ranks;
  }
  // Runs of elements that are consecutive in the global tensor and in flat space.
  const int64_t cols = plan.tensors[static_cast<size_t>(tensor.tensor)].cols;
  const bool whole_rows = tensor.cols == cols;
  const int64_t flat_begin = plan.space.placements[local].begin;
  for (const RowSegment& segment : tensor.segments) {
    const int64_t runs = whole_rows ? 1 : segment.rows;
    const int64_t length = whole_rows ? segment.rows * tensor.cols : tensor.cols;
    for (int64_t i = 0; i < runs; ++i) {
      const int64_t flat = flat_begin + (segment.local_row + i) * tensor.cols;
      const int64_t first = std::max(flat, from), last = std::min(flat + length, end);
      if (first >= last) continue;
      const int64_t global = (segment.global_row + i) * cols + tensor.global_col;
      visit(
          TensorPart{global + first - flat, {copy.buffer, at_begin + first - begin}, last - first});
    }
  }
}

// The copies of parameters that have memory of their own: working, and master where it is another.
std::vector<Representation> parameter_copies(const Plan& plan);

// Type of the tensors in a checkpoint: f64 where the deck computes in it, else f32, which holds
// shorter types exactly.
DType checkpoint_type(const Config& config);
// Bytes of a checkpoint that this rank writes (weights/contents.h): its share of parameters and
// moments, and on one rank of each stage the scales of fp8.
int64_t checkpoint_share_bytes(const Plan& plan);

}  // namespace gptbench
