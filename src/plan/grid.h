// The process grid: how global ranks map to coordinates on the axes of the decomposition.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "deck/config.h"

namespace gptbench {

// The four axes of the grid, and groups made of them:
//   zero       data x context, the ranks that hold the same part of the model; gradients are summed
//              over it and ZeRO partitions over it
//   shard      consecutive ranks of `zero` that one partition is spread over (all of it, unless
//              parallel.zero_group says less)
//   replica    ranks of `zero` with the same place in their partition
//   model      tensor x pipeline, the ranks that hold one replica of the model
//   embedding  first and last pipeline stage, which share the token embedding
//   world      all ranks
enum class Axis { tensor, context, pipeline, data, zero, shard, replica, model, embedding, world };
const char* name_of(Axis axis);
constexpr int num_axes = 10;

// Axes by parallel.rank_order, the one along which ranks follow each other first.
std::array<Axis, 4> axes_of(RankOrder order);

// Coordinates of one rank, each in [0, size of its axis).
struct Coordinates {
  int64_t tensor = 0, context = 0, pipeline = 0, data = 0;
};

// Sizes of the axes; global, the same on all ranks. Example, tensor = 2, pipeline = 2, data = 2, in
// the order tensor, context, pipeline, data:
//   rank      0 1 2 3 4 5 6 7
//   tensor    0 1 0 1 0 1 0 1
//   pipeline  0 0 1 1 0 0 1 1
//   data      0 0 0 0 1 1 1 1
// Rank 5 is tensor 1 of stage 0 of replica 1; its tensor group is {4, 5}, its pipeline group {5,
// 7}, its data group {1, 5}.
struct Grid {
  int64_t tensor = 1, context = 1, pipeline = 1, data = 1;
  int64_t zero_group = 0;  // ranks that one ZeRO partition is spread over; 0: all of `zero`
  // How ranks lie on the grid: the axis along which they follow each other first.
  std::array<Axis, 4> order = {Axis::tensor, Axis::context, Axis::pipeline, Axis::data};

  int64_t size() const { return tensor * context * pipeline * data; }
  Coordinates coordinates_of(int64_t rank) const;
  int64_t rank_of(const Coordinates& at) const;
  int64_t size_of(Axis axis) const;
  int64_t shard_size() const { return zero_group > 0 ? zero_group : data * context; }
  // Place of `rank` in its group; -1 in that of the embedding for stages between first and last,
  // and for a rank that is not on the grid (-1).
  int64_t place_of(int64_t rank, Axis axis) const;
  // Global rank at a place of the group of `rank`. Both take the same time whatever the sizes.
  int64_t member_of(int64_t rank, Axis axis, int64_t place) const;
  // Global ranks of the group of `rank` along `axis`, in order of the coordinate(s); none for a
  // rank that is not on the grid.
  std::vector<int64_t> group_of(int64_t rank, Axis axis) const;
};

// "tensor 2 x context 1 x pipeline 2 x data 2 = 8 ranks", the fastest axis first.
std::string describe(const Grid& grid);

}  // namespace gptbench
