// Arithmetic of the collectives.
#pragma once

#include <nccl.h>

#include <cstddef>

namespace gptbench::emulation {

// Bytes an element; 0: a type that is not emulated.
size_t size_of(ncclDataType_t type);

// out[i] = in[0][i] + in[1][i] + ... in this order, i = 0 .. count-1, or their maximum. Types of 16
// bits are added in f32 and rounded to nearest after each addition, as NCCL does along a ring; its
// order there differs from element to element. The maximum of a number and NaN is the number.
void reduce(void* out, const void* const* in, int ranks, size_t count, ncclDataType_t type,
            ncclRedOp_t reduction);

}  // namespace gptbench::emulation
