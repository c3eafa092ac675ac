# Kokkos::kokkos. Debian's Kokkos, a part of Trilinos (3.4.1, back end Serial), exports that target
# with an include directory that does not exist; its headers lie in include/trilinos. Kokkos_ROOT
# names another installation.
find_package(Kokkos QUIET)
if(NOT Kokkos_FOUND)
  message(FATAL_ERROR
    "Kokkos was not found. Debian, Ubuntu: apt-get install libtrilinos-kokkos-dev; Spack: spack install kokkos +openmp; "
    "an installation of its own: -DKokkos_ROOT=<prefix>")
endif()
if(NOT TARGET Kokkos::kokkos)
  message(FATAL_ERROR "Kokkos in ${Kokkos_DIR} exports no target Kokkos::kokkos; -DKokkos_ROOT=<prefix> names another")
endif()

# The headers of a target lie in its own include directories or in those of what it links.
set(kokkos_includes)
foreach(target Kokkos::kokkos Kokkos::kokkoscore)
  if(TARGET ${target})
    get_target_property(includes ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(includes)
      list(APPEND kokkos_includes ${includes})
    endif()
  endif()
endforeach()
string(REGEX REPLACE "\\$<BUILD_INTERFACE:[^>]*>|\\$<INSTALL_INTERFACE:[^>]*>" "" kokkos_includes "${kokkos_includes}")
find_path(kokkos_core NAMES Kokkos_Core.hpp PATHS ${kokkos_includes} NO_DEFAULT_PATH NO_CACHE)
if(NOT kokkos_core)
  find_path(kokkos_core NAMES Kokkos_Core.hpp HINTS ${Kokkos_INCLUDE_DIRS} PATH_SUFFIXES trilinos NO_CACHE)
  if(NOT kokkos_core)
    message(FATAL_ERROR "Kokkos was found in ${Kokkos_DIR}, its header Kokkos_Core.hpp was not; -DKokkos_ROOT=<prefix> names another")
  endif()
  set_target_properties(Kokkos::kokkos PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${kokkos_core}" INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${kokkos_core}")
endif()

file(STRINGS ${kokkos_core}/KokkosCore_config.h line REGEX "define KOKKOS_VERSION +[0-9]+")
string(REGEX REPLACE ".*KOKKOS_VERSION +([0-9]+).*" "\\1" number "${line}")  # 30401: 3.4.1
if(number MATCHES "^[0-9]+$")
  math(EXPR major "${number} / 10000")
  math(EXPR minor "${number} / 100 % 100")
  math(EXPR patch "${number} % 100")
  set(GPTBENCH_KOKKOS_VERSION ${major}.${minor}.${patch})
else()
  set(GPTBENCH_KOKKOS_VERSION ${Kokkos_VERSION})
endif()
if(GPTBENCH_KOKKOS_VERSION VERSION_LESS 3.4)
  message(FATAL_ERROR "Kokkos ${GPTBENCH_KOKKOS_VERSION} in ${Kokkos_DIR} is too old: 3.4 or later is needed; -DKokkos_ROOT=<prefix> names another")
endif()
# Kokkos 5 needs C++20.
if(GPTBENCH_KOKKOS_VERSION VERSION_GREATER_EQUAL 5.0 AND CMAKE_CXX_STANDARD LESS 20)
  set(CMAKE_CXX_STANDARD 20)
endif()
set(GPTBENCH_KOKKOS_DEVICES ${Kokkos_DEVICES})
