#include "plan/grid.h"

#include "base/text.h"

namespace gptbench {
namespace {

struct AxisFields {
  int64_t Grid::*size;
  int64_t Coordinates::*place;
};

// axis: one of the four of the grid.
const AxisFields& fields_of(Axis axis) {
  static constexpr AxisFields fields[] = {{&Grid::tensor, &Coordinates::tensor},
                                          {&Grid::context, &Coordinates::context},
                                          {&Grid::pipeline, &Coordinates::pipeline},
                                          {&Grid::data, &Coordinates::data}};
  return fields[static_cast<size_t>(axis)];
}

// Ranks along an axis, and the place of one of them; -1: it is not on the axis.
struct Span {
  int64_t size, place;
};

Span span_of(const Grid& grid, const Coordinates& at, Axis axis) {
  const int64_t zero_rank = at.data * grid.context + at.context, shard = grid.shard_size();
  const int64_t last_stage = grid.pipeline - 1;
  switch (axis) {
    case Axis::tensor:
      return {grid.tensor, at.tensor};
    case Axis::context:
      return {grid.context, at.context};
    case Axis::pipeline:
      return {grid.pipeline, at.pipeline};
    case Axis::data:
      return {grid.data, at.data};
    case Axis::zero:
      return {grid.data * grid.context, zero_rank};
    case Axis::shard:
      return {shard, zero_rank % shard};
    case Axis::replica:
      return {grid.data * grid.context / shard, zero_rank / shard};
    case Axis::model:
      return {grid.tensor * grid.pipeline, at.tensor + grid.tensor * at.pipeline};
    case Axis::embedding:
      return {last_stage > 0 ? 2 : 1, at.pipeline == 0 ? 0 : at.pipeline == last_stage ? 1 : -1};
    case Axis::world:
      break;
  }
  return {grid.size(), grid.rank_of(at)};
}

}  // namespace

std::array<Axis, 4> axes_of(RankOrder order) {
  std::array<Axis, 4> axes{};
  size_t place = 0;
  for (const std::string& name : split(name_of(order), '_'))
    axes[place++] = name == "tp"   ? Axis::tensor
                    : name == "cp" ? Axis::context
                    : name == "pp" ? Axis::pipeline
                                   : Axis::data;
  return axes;
}

const char* name_of(Axis axis) {
  static const char* const names[num_axes] = {"tensor",    "context", "pipeline", "data",
                                              "zero",      "shard",   "replica",  "model",
                                              "embedding", "world"};
  return names[static_cast<int>(axis)];
}

Coordinates Grid::coordinates_of(int64_t rank) const {
  Coordinates at;
  for (const Axis axis : order) {
    const AxisFields& fields = fields_of(axis);
    at.*fields.place = rank % (this->*fields.size);
    rank /= this->*fields.size;
  }
  return at;
}

int64_t Grid::rank_of(const Coordinates& at) const {
  int64_t rank = 0, stride = 1;
  for (const Axis axis : order) {
    const AxisFields& fields = fields_of(axis);
    rank += stride * (at.*fields.place);
    stride *= this->*fields.size;
  }
  return rank;
}

int64_t Grid::size_of(Axis axis) const {
  return span_of(*this, {}, axis).size;
}

int64_t Grid::member_of(int64_t rank, Axis axis, int64_t place) const {
  Coordinates member = coordinates_of(rank);
  int64_t zero_rank = member.data * context + member.context;
  switch (axis) {
    case Axis::tensor:
      member.tensor = place;
      break;
    case Axis::context:
      member.context = place;
      break;
    case Axis::pipeline:
      member.pipeline = place;
      break;
    case Axis::data:
      member.data = place;
      break;
    case Axis::zero:
      zero_rank = place;
      break;
    case Axis::shard:
      zero_rank = zero_rank / shard_size() * shard_size() + place;
      break;
    case Axis::replica:
      zero_rank = zero_rank % shard_size() + place * shard_size();
      break;
    case Axis::model:
      member.tensor = place % tensor;
      member.pipeline = place / tensor;
      break;
    case Axis::embedding:
      member.pipeline = place == 0 ? 0 : pipeline - 1;
      break;
    case Axis::world:
      return place;
  }
  if (axis == Axis::zero || axis == Axis::shard || axis == Axis::replica) {
    member.data = zero_rank / context;
    member.context = zero_rank % context;
  }
  return rank_of(member);
}

int64_t Grid::place_of(int64_t rank, Axis axis) const {
  return rank < 0 ? -1 : span_of(*this, coordinates_of(rank), axis).place;
}

std::vector<int64_t> Grid::group_of(int64_t rank, Axis axis) const {
  std::vector<int64_t> members;
  for (int64_t place = 0; rank >= 0 && place < size_of(axis); ++place)
    members.push_back(member_of(rank, axis, place));
  return members;
}

std::string describe(const Grid& grid) {
  std::string text;
  for (const Axis axis : grid.order)
    text += (text.empty() ? "" : " x ") + std::string(name_of(axis)) + " " +
            std::to_string(grid.size_of(axis));
  return text + " = " + std::to_string(grid.size()) + (grid.size() == 1 ? " rank" : " ranks");
}

}  // namespace gptbench
