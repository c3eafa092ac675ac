// What a run needs beside its plan.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace gptbench {

// Device memory for context, libraries and fragmentation.
constexpr int64_t reserve_bytes = int64_t{2} * GiB;

}  // namespace gptbench
