// Where launches of emulated kernels go: defined by what the kernels are linked with. Kernels alone
// run before the launch returns (launch_at_once.cpp), those of the whole program are work of an
// emulated stream (test/emulated_gpu/launch_on_stream.cpp).
#pragma once

#include <functional>

struct CUstream_st;  // cudaStream_t points to it

namespace gptbench {
class Queue;
}

namespace gptbench::emulation {

CUstream_st* stream_of(Queue& queue);
// Before each launch; `name` is that of all instantiations.
void load_kernel(const char* name, const void* kernel);
void submit(CUstream_st* stream, const char* kernel, std::function<void()> grid);

}  // namespace gptbench::emulation
