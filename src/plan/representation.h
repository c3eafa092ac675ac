// Where parameters lie. All tensors of a rank are packed into one flat index space, unit by unit; a
// representation is one copy of that space, or of this rank's shards of it: its role, type,
// residency. Mixed precision, ZeRO and offload differ only in which representations exist.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "plan/model.h"
#include "plan/shard.h"

namespace gptbench {

// working: what GEMMs read; master: what AdamW updates; gradient: accumulated in a step;
// gradient_shard: the part of the reduced gradient that this rank updates with.
enum class Role : uint8_t { working, master, gradient, gradient_shard, moment1, moment2 };
enum class Residency : uint8_t { device, host, file };

// How a copy is laid out:
//   flat      all of flat space
//   own_part  shards of this rank at their places inside a flat copy, without memory of their own
//   shards    shards of this rank, packed
enum class Extent : uint8_t { flat, own_part, shards };

struct Representation {
  Role role = Role::working;
  DType dtype = DType::f32;
  Residency residency = Residency::device;
  Extent extent = Extent::flat;
  int buffer = -1;  // of Plan::buffers
};

// One tensor in flat space: [begin, begin + size), row-major.
struct Placement {
  int64_t begin = 0, size = 0;
};

// Tensors that are gathered, reduced and updated together: [begin, end) of flat space. Its tensors
// come in the order: split by tensor parallelism and decaying, the rest of the decaying, then those
// without decay, split ones last where a replicated one decays and first where none does, so that
// replicated ones stand together; padded at the end so that it cuts into equal shards.
struct Unit {
  UnitKind kind = UnitKind::layer;
  int64_t layer = -1;
  int64_t begin = 0, end = 0;
  int64_t decay_end = 0;                             // weight decay applies to [begin, decay_end)
  int64_t replicated_begin = 0, replicated_end = 0;  // the same on all tensor-parallel ranks
  bool counted = true;  // false: a tied copy whose norm another stage counts
  int64_t shard = 0;  // elements of one shard; shard r is [begin + r shard, begin + (r + 1) shard)
  int64_t shard_begin = 0;  // of this unit in a packed copy of shards
  int64_t size() const { return end - begin; }
};

struct FlatSpace {
  std::vector<LocalTensor> tensors;                        // held by this rank
  std::vector<Placement> placements;                       // [local tensor]
  std::vector<int> unit_of;                                // [local tensor]
  std::vector<Unit> units;                                 // ascending
  std::unordered_map<int, int> local_of;                   // logical tensor -> local tensor
  std::map<std::pair<UnitKind, int64_t>, int> unit_index;  // (kind, layer or -1) -> unit
  int64_t elements = 0;                                    // padding included
  int64_t shard_elements = 0;                              // of all shards of this rank
  int64_t num_shards = 1;                                  // ranks that a unit is partitioned over

  int unit_at(int64_t flat) const;  // that holds element `flat`
  int unit_at_shard(int64_t packed) const;
  int find(int tensor) const;  // local tensor of logical tensor `tensor`, -1: not here
  int find_unit(UnitKind kind, int64_t layer = -1) const;  // -1: not here
};

// Tensors and shards start at multiples of this many elements: a cache line of f32.
constexpr int64_t tensor_alignment = 16;

// Appends a unit of the given local tensors, padded to `num_shards` equal shards.
void add_unit(FlatSpace& space, UnitKind kind, int64_t layer,
              const std::vector<LocalTensor>& members, const std::vector<LogicalTensor>& tensors);

}  // namespace gptbench
