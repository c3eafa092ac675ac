#pragma once

#include <cstdint>

#include "device/device.h"

namespace gptbench {

// Fills an array on the device with random numbers, the same in each call, or with ones. What is
// measured reads such arrays: the power that a GPU draws depends on the data, and memory of a host
// that nothing has written is one page of zeros, again and again.
void fill_random(Device& device, Queue& queue, ComputeType compute, void* data, int64_t elements,
                 DType type);
void fill_ones(Device& device, Queue& queue, ComputeType compute, void* data, int64_t elements,
               DType type);

}  // namespace gptbench
