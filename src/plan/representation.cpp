#include "plan/representation.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace gptbench {

int FlatSpace::unit_at(int64_t flat) const {
  const auto above =
      std::upper_bound(units.begin(), units.end(), flat,
                       [](int64_t element, const Unit& unit) { return element < unit.begin; });
  if (above == units.begin() || flat >= above[-1].end) return -1;
  return static_cast<int>(above - units.begin()) - 1;
}

int FlatSpace::unit_at_shard(int64_t packed) const {
  const auto above = std::upper_bound(
      units.begin(), units.end(), packed,
      [](int64_t element, const Unit& unit) { return element < unit.shard_begin; });
  if (above == units.begin() || packed >= above[-1].shard_begin + above[-1].shard) return -1;
  return static_cast<int>(above - units.begin()) - 1;
}

int FlatSpace::find(int tensor) const {
  const auto found = local_of.find(tensor);
  return found != local_of.end() ? found->second : -1;
}

int FlatSpace::find_unit(UnitKind kind, int64_t layer) const {
  const auto found = unit_index.find({kind, kind == UnitKind::layer ? layer : -1});
  return found != unit_index.end() ? found->second : -1;
}

void add_unit(FlatSpace& space, UnitKind kind, int64_t layer,
              const std::vector<LocalTensor>& members, const std::vector<LogicalTensor>& tensors) {
  Unit unit;
  unit.kind = kind;
  unit.layer = layer;
  unit.begin = space.elements;
  unit.replicated_begin = unit.replicated_end = -1;
  const bool matrices_replicated =
      std::any_of(members.begin(), members.end(), [&](const LocalTensor& member) {
        return member.replicated && tensors[static_cast<size_t>(member.tensor)].decay;
      });
  for (const bool decay : {true, false}) {
    const bool replicated_first = !decay && matrices_replicated;
    for (const bool replicated : {replicated_first, !replicated_first}) {
      for (const LocalTensor& member : members) {
        if (tensors[static_cast<size_t>(member.tensor)].decay != decay ||
            member.replicated != replicated)
          continue;
        if (replicated) {
          if (unit.replicated_begin < 0) unit.replicated_begin = space.elements;
          GPTBENCH_CHECK(unit.replicated_end < 0 || unit.replicated_end == space.elements,
                         "replicated tensors of a unit stand together");
        }
        space.local_of[member.tensor] = static_cast<int>(space.tensors.size());
        space.tensors.push_back(member);
        space.placements.push_back({space.elements, member.size()});
        space.unit_of.push_back(static_cast<int>(space.units.size()));
        space.elements = round_up(space.elements + member.size(), tensor_alignment);
        if (replicated) unit.replicated_end = space.elements;
        unit.counted = unit.counted && (member.counted || member.replicated);
      }
    }
    if (decay) unit.decay_end = space.elements;
  }
  if (unit.replicated_begin < 0) unit.replicated_begin = unit.replicated_end = space.elements;
  unit.shard = round_up(ceil_div(space.elements - unit.begin, space.num_shards), tensor_alignment);
  unit.end = unit.begin + unit.shard * space.num_shards;
  unit.shard_begin = space.shard_elements;
  space.elements = unit.end;
  space.shard_elements += unit.shard;
  space.unit_index.insert(
      {{kind, kind == UnitKind::layer ? layer : -1}, static_cast<int>(space.units.size())});
  space.units.push_back(unit);
}

}  // namespace gptbench
