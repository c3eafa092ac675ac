// How this program was built; recorded in every result file and printed by --version.
#pragma once

namespace gptbench {

// Version of the project as CMakeLists.txt states it, such as "0.2.4".
const char* build_version();
// Twelve digits of the commit that was built, "+" appended when tracked files differed from it;
// "unknown" outside git. Programs know it; test programs say "unknown"
// (cmake/GptbenchCommit.cmake).
const char* build_git_commit();
// "GNU 12.2.0"
const char* build_compiler();
// Build type, flags and language standard: "Release: -O3 -g1 -DNDEBUG -march=native, C++17".
const char* build_flags();
// The libraries found by the build, separated by "; ": "Open MPI 4.1.4; Kokkos 3.4.1 (SERIAL);
// ...". The last is "CUDA 13.0.48", or "without CUDA".
const char* build_libraries();

}  // namespace gptbench
