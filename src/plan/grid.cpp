#include "plan/grid.h"

namespace gptbench {

const char* name_of(Axis axis) {
  static const char* const names[num_axes] = {"tensor", "context", "pipeline",
                                              "data",   "zero",    "world"};
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
    case Axis::world:
      return size();
  }
  return 1;
}

std::vector<int64_t> Grid::group_of(int64_t rank, Axis axis) const {
  std::vector<int64_t> members;
  members.reserve(static_cast<size_t>(size_of(axis)));
  Coordinates at = coordinates_of(rank);
  switch (axis) {
    case Axis::tensor:
      for (at.tensor = 0; at.tensor < tensor; ++at.tensor) members.push_back(rank_of(at));
      break;
    case Axis::context:
      for (at.context = 0; at.context < context; ++at.context) members.push_back(rank_of(at));
      break;
    case Axis::pipeline:
      for (at.pipeline = 0; at.pipeline < pipeline; ++at.pipeline) members.push_back(rank_of(at));
      break;
    case Axis::data:
      for (at.data = 0; at.data < data; ++at.data) members.push_back(rank_of(at));
      break;
    case Axis::zero:
      for (at.data = 0; at.data < data; ++at.data)
        for (at.context = 0; at.context < context; ++at.context) members.push_back(rank_of(at));
      break;
    case Axis::world:
      for (int64_t r = 0; r < size(); ++r) members.push_back(r);
      break;
  }
  return members;
}

std::string describe(const Grid& grid) {
  return "tensor " + std::to_string(grid.tensor) + " x context " + std::to_string(grid.context) +
         " x pipeline " + std::to_string(grid.pipeline) + " x data " + std::to_string(grid.data) +
         " = " + std::to_string(grid.size()) + (grid.size() == 1 ? " rank" : " ranks");
}

}  // namespace gptbench
