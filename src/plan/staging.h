// Host memory that messages of a device, and what it offloads to a file, go by where communicators
// and files cannot reach its own.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "plan/plan.h"

namespace gptbench {

// Maximum size of the pieces in which data is written to a file.
constexpr int64_t file_piece_bytes = 64 * MiB;

// Bytes that hold the arrays of the largest message of a step on `queue`: the full array, and this
// rank's part beside it where one is scattered (a part that is gathered lies within the array);
// none with NCCL, which reaches the device's memory. Or the largest piece that goes to a file.
int64_t staging_bytes(const Plan& plan, QueueId queue);
// Over all queues.
int64_t staging_bytes(const Plan& plan);

}  // namespace gptbench
