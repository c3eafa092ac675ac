// Matrix products of the host through oneDNN (arXiv:2301.01333; 2.6 to 3.x), planned once and
// reused.
#pragma once

#include <string>

namespace gptbench {

// Threads that oneDNN uses from this thread: follows Kokkos, so that a Serial Kokkos means one.
void set_gemm_threads(int threads);

// "oneDNN 2.6.3 (avx512_core_bf16)".
std::string gemm_library_description();

}  // namespace gptbench
