# CUDA is a second back end of the same binary: built wherever nvcc is found, chosen at run time.
# GPTBENCH_CUDA_ENABLED says whether it is.
set(GPTBENCH_CUDA_ENABLED OFF)
if(GPTBENCH_CUDA)
  # The usual place, beside the PATH; CUDACXX and CMAKE_CUDA_COMPILER name another.
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(GPTBENCH_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(GPTBENCH_NVCC)
    if(GPTBENCH_NVCC)
      set(CMAKE_CUDA_COMPILER ${GPTBENCH_NVCC})
    endif()
  endif()
  # Machine code for A100 and H100/H200, PTX for what follows.
  if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  if(NOT CMAKE_CUDA_STANDARD)
    set(CMAKE_CUDA_STANDARD 17)
  endif()
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # A compiler that is there and does not work is an error, not a build without CUDA.
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
      message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old: CUDA 12.0 or later is needed; "
        "-DCMAKE_CUDA_COMPILER=<nvcc> names another, -DGPTBENCH_CUDA=OFF builds without")
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(GPTBENCH_CUDA_ENABLED ON)
  elseif(NOT GPTBENCH_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "GPTBENCH_CUDA=${GPTBENCH_CUDA}, and no nvcc was found; -DCMAKE_CUDA_COMPILER=<nvcc> names one")
  endif()
endif()

# gptbench_cuda_kernels_library(NAME SOURCES...): CUDA sources as one shared library, so that the programs of
# a bundle hold one copy. They are compiled apart from the C++ sources, whose flags nvcc does not accept;
# warnings of either of its compilers are errors where ours are. What the library uses of other layers is
# resolved by the program that links it. Library and program each link the CUDA runtime statically, as
# NVIDIA's own libraries do; both use the primary context of the device.
function(gptbench_cuda_kernels_library name)
  add_library(${name} SHARED ${ARGN})
  target_link_libraries(${name} INTERFACE gptbench_device CUDA::cudart_static)
  # Kernels call functions of the layer cuda, which programs that launch none do not have. Some compilers
  # ask the linker for this themselves, though not with sanitizers.
  target_link_options(${name} INTERFACE LINKER:--as-needed)
  target_include_directories(${name} PRIVATE ${CMAKE_BINARY_DIR}/include_roots/cuda
    $<TARGET_PROPERTY:gptbench_device,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_options(${name} PRIVATE -Xcompiler=-Wall,-Wextra,-Wshadow,-fopenmp-simd --expt-relaxed-constexpr)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    target_compile_options(${name} PRIVATE --compress-mode=size)  # a quarter of the default's
  endif()
  if(GPTBENCH_WERROR)
    target_compile_options(${name} PRIVATE -Werror=all-warnings -Xcompiler=-Werror)
  endif()
  # No device function is called across files.
  set_target_properties(${name} PROPERTIES CUDA_SEPARABLE_COMPILATION OFF CUDA_RUNTIME_LIBRARY Static)
endfunction()
