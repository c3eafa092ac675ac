// Properties of the executing device that a plan depends on, as a value: plans are made without a
// device at hand.
#pragma once

#include <cstdint>

#include "deck/config.h"

namespace gptbench {

struct Plan;

struct DeviceTraits {
  // One kernel forms a product and the activation behind it, one the sum of the residual stream and
  // its norm (plan/fuse.h).
  bool fuses = false;
  // Beside `fuses`: what forms dy of a linear layer sums its rows in passing, the gradient of the
  // bias; the loss and its gradient are one pass over the logits.
  bool single_pass = false;
  // A step can be recorded and repeated (plan/replay.h).
  bool replays = false;
  // Products in fp8 also want their factors transposed, and sizes that are multiples of
  // `fp8_multiple`.
  bool transposes_fp8 = false;
  int64_t fp8_multiple = 1;
  int64_t threads = 1;  // per rank
  // The output head forms the logits of at most so many rows at a time, in at most so many bytes
  // where that leaves 1024 rows. A host's cache wants few, the GEMMs of a GPU many.
  int64_t head_rows = 1024;
  int64_t head_bytes = int64_t{2} << 30;
  // Scratch memory of the kernels that execute a plan, in bytes; null: they need none.
  int64_t (*scratch_bytes)(const Plan& plan) = nullptr;
};

// `kind` of a resolved deck; DeviceKind::auto_ counts as the host.
DeviceTraits device_traits(DeviceKind kind, int64_t threads = 1);

}  // namespace gptbench
