// Host memory that messages of a device go by where communicators cannot reach its own.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace gptbench {

// Bytes that hold the arrays of the largest message of a step on `queue`: the full array, and this
// rank's part beside it where one is gathered or scattered.
int64_t staging_bytes(const Plan& plan, QueueId queue);
// Over all queues.
int64_t staging_bytes(const Plan& plan);

}  // namespace gptbench
