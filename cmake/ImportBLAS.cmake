# GPTBENCH_BLAS names the library of large f32 GEMMs, as CMake's FindBLAS names vendors (OpenBLAS, Arm_mp,
# Fujitsu_SSL2BLAMPSVE, Generic, ...; All: whichever is found). Empty: oneDNN alone, which has no SVE or
# NEON GEMMs before version 3.
set(GPTBENCH_BLAS "" CACHE STRING "BLAS of f32 GEMMs, a vendor of FindBLAS; empty: oneDNN")
if(GPTBENCH_BLAS)
  set(BLA_VENDOR ${GPTBENCH_BLAS})
  find_package(BLAS)
  if(NOT BLAS_FOUND)
    message(FATAL_ERROR "GPTBENCH_BLAS=${GPTBENCH_BLAS} was not found; CMAKE_PREFIX_PATH names its installation, "
      "cmake --help-module FindBLAS lists the vendors")
  endif()
endif()
