# Cross build for Arm on Debian: g++-aarch64-linux-gnu, Debian's arm64 libraries in a directory of their
# own, and qemu-user with 512-bit SVE for whatever has to run.
#
#   sh cmake/aarch64/sysroot.sh build/aarch64-sysroot
#   cmake --preset aarch64 && cmake --build build/aarch64 --target programs
#
# GPTBENCH_SYSROOT names the directory. The processor is A64FX; its flags are part of CMAKE_CXX_FLAGS.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(GPTBENCH_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64-sysroot CACHE PATH "Debian's arm64 libraries")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GPTBENCH_SYSROOT)
get_filename_component(CMAKE_SYSROOT ${GPTBENCH_SYSROOT} ABSOLUTE)
if(NOT EXISTS ${CMAKE_SYSROOT}/complete)
  message(FATAL_ERROR "no libraries in ${CMAKE_SYSROOT}; sh cmake/aarch64/sysroot.sh ${CMAKE_SYSROOT} unpacks them")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_C_FLAGS_INIT -mcpu=a64fx)
set(CMAKE_CXX_FLAGS_INIT -mcpu=a64fx)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT} -cpu a64fx)

# MPI's compiler wrapper is this machine's, and would name this machine's library. Its launcher serves:
# it starts one emulator per rank.
set(libraries ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(MPI_CXX_COMPILER_INCLUDE_DIRS ${libraries}/openmpi/include CACHE STRING "")
set(MPI_CXX_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY ${libraries}/libmpi.so.40 CACHE FILEPATH "")
