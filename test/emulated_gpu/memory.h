// Memory of the emulated GPU: allocations of the device, which the host can touch only while the
// GPU works, with pages behind each that nobody can touch, and page-locked memory of the host.
//
// GPTBENCH_EMULATED_GPU_MIB: what the device offers (default 4096).
#pragma once

#include <cstddef>

namespace gptbench::emulation {

size_t device_capacity();
size_t device_free();
// Null where it does not fit; what it holds at first is NaN to whoever reads it. 256-byte aligned.
void* allocate_device(size_t bytes);
void* allocate_pinned(size_t bytes);
// End the process where `memory` is none that was allocated.
void free_device(void* memory);
void free_pinned(void* memory);

// As memset, for memory of the device.
void fill_device(void* memory, int value, size_t bytes);

// On the GPU's thread: before and after it works.
void open_device_memory();
void close_device_memory();

}  // namespace gptbench::emulation
