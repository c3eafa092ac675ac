# gptbench_warnings: how our own code is compiled; linked privately by every target of ours.
include(CheckCXXCompilerFlag)
add_library(gptbench_warnings INTERFACE)
target_compile_options(gptbench_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wformat-security)
# As C++20 GCC 12 takes `"text" + string` for a copy that overlaps (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND CMAKE_CXX_STANDARD GREATER_EQUAL 20)
  target_compile_options(gptbench_warnings INTERFACE -Wno-restrict)
endif()
if(GPTBENCH_WERROR)
  target_compile_options(gptbench_warnings INTERFACE -Werror)
endif()
if(GPTBENCH_NATIVE)
  # -march=native of GCC on Arm leaves the tuning for a generic processor; x86 deprecates -mcpu.
  set(flags march mcpu)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(flags mcpu march)
  endif()
  foreach(flag ${flags})
    check_cxx_compiler_flag(-${flag}=native GPTBENCH_HAS_${flag}_NATIVE)
    if(GPTBENCH_HAS_${flag}_NATIVE)
      target_compile_options(gptbench_warnings INTERFACE -${flag}=native)
      break()
    endif()
  endforeach()
endif()
# Loops say where they are meant to be vectorised (#pragma omp simd); no OpenMP runtime is needed.
target_compile_options(gptbench_warnings INTERFACE -fopenmp-simd -fno-math-errno)

# Sanitizers change every object of ours. GCC's flow analysis reports what they insert as uninitialised.
if(GPTBENCH_SANITIZE)
  target_compile_options(gptbench_warnings INTERFACE -Wno-maybe-uninitialized)
  # Not of nvcc, which does not know them.
  foreach(flag -fsanitize=${GPTBENCH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:${flag}>)
  endforeach()
  add_link_options(-fsanitize=${GPTBENCH_SANITIZE})
endif()
