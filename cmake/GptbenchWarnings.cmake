# gptbench_warnings: how our own code is compiled; linked privately by every target of ours.
add_library(gptbench_warnings INTERFACE)
target_compile_options(gptbench_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual)
if(GPTBENCH_WERROR)
  target_compile_options(gptbench_warnings INTERFACE -Werror)
endif()
if(GPTBENCH_NATIVE)
  target_compile_options(gptbench_warnings INTERFACE -march=native)
endif()
# Loops say where they are meant to be vectorised (#pragma omp simd); no OpenMP runtime is needed.
target_compile_options(gptbench_warnings INTERFACE -fopenmp-simd -fno-math-errno)
