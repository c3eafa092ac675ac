// Where parameters lie. All tensors of a rank are packed into one flat index space, bucket by
// bucket (embedding, one a layer, the final LayerNorm with the last layer); a representation is one
// copy of that space or of a shard of it: its role, type, residency and range. Mixed precision,
// ZeRO and offload differ only in which representations exist.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "plan/model.h"

namespace gptbench {

// working: what GEMMs read; master: what AdamW updates (the same buffer where both have one type).
enum class Role : uint8_t { working, master, gradient, moment1, moment2 };
enum class Residency : uint8_t { device, host, file };

struct Representation {
  Role role = Role::working;
  DType dtype = DType::f32;
  Residency residency = Residency::device;
  int buffer = -1;             // of Plan::buffers
  int64_t begin = 0, end = 0;  // flat elements held here; local
};

// One tensor in flat space: [begin, begin + size), row-major.
struct Placement {
  int64_t begin = 0, size = 0;
};

// Tensors reduced and updated together: [begin, end) of flat space, those with weight decay first,
// up to `decay_end`.
struct Bucket {
  int64_t begin = 0, decay_end = 0, end = 0;
  int64_t first_layer = 0, last_layer = 0;  // of LogicalTensor::layer, inclusive
};

struct FlatSpace {
  std::vector<Placement> placements;  // [tensor]
  std::vector<Bucket> buckets;        // ascending
  int64_t elements = 0;               // padding between tensors included
};

// Tensors start at multiples of this many elements: a cache line of f32.
constexpr int64_t tensor_alignment = 16;

FlatSpace pack(const std::vector<LogicalTensor>& tensors, int64_t num_layers);

}  // namespace gptbench
