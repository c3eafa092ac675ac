# Kokkos::kokkos. A Kokkos of its own exports that target. Debian's package, a part of Trilinos
# (Kokkos 3.4, back end Serial), exports trilinos_kokkoscore with an include directory that does not
# hold the headers; they lie in include/trilinos. Kokkos_ROOT names another installation.
find_package(Kokkos REQUIRED)
if(NOT TARGET Kokkos::kokkos)
  get_target_property(kokkos_includes trilinos_kokkoscore INTERFACE_INCLUDE_DIRECTORIES)
  find_path(KOKKOS_CORE_DIR NAMES Kokkos_Core.hpp HINTS ${kokkos_includes} PATH_SUFFIXES trilinos)
  if(NOT KOKKOS_CORE_DIR)
    message(FATAL_ERROR "Kokkos was found in ${Kokkos_DIR}, its header Kokkos_Core.hpp was not; set Kokkos_ROOT")
  endif()
  set_target_properties(trilinos_kokkoscore PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "")
  add_library(Kokkos::kokkos INTERFACE IMPORTED)
  target_include_directories(Kokkos::kokkos SYSTEM INTERFACE ${KOKKOS_CORE_DIR})
  target_link_libraries(Kokkos::kokkos INTERFACE trilinos_kokkoscore)
endif()
