// The emulated GPU, for what gives it work: the CUDA runtime (runtime_api.cpp), the emulated
// kernels, and the libraries of CUDA that tests emulate (cublaslt/, nccl/). It has one thread, on
// which all work of all streams runs; what runs when is decided late, so that work that nothing
// orders is found in an order that a GPU may take and a test would else not see.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

struct CUstream_st;  // cudaStream_t points to it

namespace gptbench::emulation {

// One piece of a stream's work, called on the GPU's thread when all before it on the stream has
// ended; returns whether it has ended. One that waits for a peer returns false and is called again,
// after other streams had their turn; it must not block. Called to its end more than once where a
// graph that recorded it is replayed: after each true it begins anew, with the same arguments.
using Work = std::function<bool()>;

// Appends to the stream, or records where the stream is being captured into a graph. `name` is for
// messages.
void enqueue(CUstream_st* stream, const std::string& name, Work work);

// To be called before what runs `code` is enqueued. A driver loads it at its first use, and may
// wait then until all has run that any stream holds. With GPTBENCH_EMULATED_LOADING_WAITS this
// waits, so that ranks hang whose messages need what follows.
void load_code(const std::string& code);

// Whether all of the bytes lie in one allocation of the device, or of page-locked host memory.
bool is_device_memory(const void* address, size_t bytes);
bool is_pinned_memory(const void* address, size_t bytes);

// A use that a GPU or its library answers with undefined behaviour or at best with an error: says
// so on standard error and ends the process (abort). Arguments as of printf.
[[noreturn]] __attribute__((format(printf, 1, 2))) void misuse(const char* format, ...);

}  // namespace gptbench::emulation
