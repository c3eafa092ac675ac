#include "plan/grid.h"

#include <algorithm>

namespace gptbench {

const char* name_of(Axis axis) {
  static const char* const names[num_axes] = {"tensor",    "context", "pipeline", "data",
                                              "zero",      "shard",   "replica",  "model",
                                              "embedding", "world"};
  return names[static_cast<int>(axis)];
}

Coordinates Grid::coordinates_of(int64_t rank) const {
  Coordinates at;
  at.tensor = rank % tensor;
  rank /= tensor;
  at.context = rank % context;
  rank /= context;
  at.pipeline = rank % pipeline;
  at.data = rank / pipeline;
  return at;
}

int64_t Grid::rank_of(const Coordinates& at) const {
  return at.tensor + tensor * (at.context + context * (at.pipeline + pipeline * at.data));
}

int64_t Grid::size_of(Axis axis) const {
  switch (axis) {
    case Axis::tensor:
      return tensor;
    case Axis::context:
      return context;
    case Axis::pipeline:
      return pipeline;
    case Axis::data:
      return data;
    case Axis::zero:
      return data * context;
    case Axis::shard:
      return shard_size();
    case Axis::replica:
      return data * context / shard_size();
    case Axis::model:
      return tensor * pipeline;
    case Axis::embedding:
      return pipeline > 1 ? 2 : 1;
    case Axis::world:
      return size();
  }
  return 1;
}

std::vector<int64_t> Grid::group_of(int64_t rank, Axis axis) const {
  const Coordinates at = coordinates_of(rank);
  const int64_t zero_rank = at.data * context + at.context;
  std::vector<int64_t> members;
  for (int64_t i = 0; i < size_of(axis); ++i) {
    Coordinates member = at;
    int64_t zero_member = zero_rank;
    switch (axis) {
      case Axis::tensor:
        member.tensor = i;
        break;
      case Axis::context:
        member.context = i;
        break;
      case Axis::pipeline:
        member.pipeline = i;
        break;
      case Axis::data:
        member.data = i;
        break;
      case Axis::zero:
        zero_member = i;
        break;
      case Axis::shard:
        zero_member = zero_rank / shard_size() * shard_size() + i;
        break;
      case Axis::replica:
        zero_member = zero_rank % shard_size() + i * shard_size();
        break;
      case Axis::model:
        member.tensor = i % tensor;
        member.pipeline = i / tensor;
        break;
      case Axis::embedding:
        member.pipeline = i == 0 ? 0 : pipeline - 1;
        break;
      case Axis::world:
        member = coordinates_of(i);
        break;
    }
    if (axis == Axis::zero || axis == Axis::shard || axis == Axis::replica) {
      member.data = zero_member / context;
      member.context = zero_member % context;
    }
    members.push_back(rank_of(member));
  }
  return members;
}

int64_t Grid::place_of(int64_t rank, Axis axis) const {
  const std::vector<int64_t> members = group_of(rank, axis);
  return std::find(members.begin(), members.end(), rank) - members.begin();
}

std::string describe(const Grid& grid) {
  return "tensor " + std::to_string(grid.tensor) + " x context " + std::to_string(grid.context) +
         " x pipeline " + std::to_string(grid.pipeline) + " x data " + std::to_string(grid.data) +
         " = " + std::to_string(grid.size()) + (grid.size() == 1 ? " rank" : " ranks");
}

}  // namespace gptbench
