# OneDNN::OneDNN from header and library alone: Debian's own CMake package asks for OpenCL headers
# that a CPU-only program has no use for. OneDNN_ROOT (or DNNL_ROOT) names another installation; CMake
# heeds such variables by itself in find_package alone.
set(onednn_roots ${OneDNN_ROOT} ENV OneDNN_ROOT ${DNNL_ROOT} ENV DNNL_ROOT ENV DNNLROOT)
find_path(OneDNN_INCLUDE_DIR NAMES oneapi/dnnl/dnnl.hpp HINTS ${onednn_roots} PATH_SUFFIXES include)
find_library(OneDNN_LIBRARY NAMES dnnl HINTS ${onednn_roots} PATH_SUFFIXES lib lib64)
if(NOT OneDNN_INCLUDE_DIR OR NOT OneDNN_LIBRARY)
  message(FATAL_ERROR
    "oneDNN (oneapi/dnnl/dnnl.hpp and libdnnl) was not found. Debian, Ubuntu: apt-get install libdnnl-dev; "
    "Spack: spack install onednn; an installation of its own: -DOneDNN_ROOT=<prefix>")
endif()
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)

file(STRINGS ${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines
  REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
string(REGEX REPLACE "[^0-9;]" "" digits "${lines}")
string(REPLACE ";" "." OneDNN_VERSION "${digits}")
if(OneDNN_VERSION VERSION_LESS 2.6)
  message(FATAL_ERROR "oneDNN ${OneDNN_VERSION} in ${OneDNN_INCLUDE_DIR} is too old: 2.6 or later is needed; "
    "-DOneDNN_ROOT=<prefix> names another installation")
endif()

add_library(OneDNN::OneDNN UNKNOWN IMPORTED)
set_target_properties(OneDNN::OneDNN PROPERTIES IMPORTED_LOCATION ${OneDNN_LIBRARY})
target_include_directories(OneDNN::OneDNN SYSTEM INTERFACE ${OneDNN_INCLUDE_DIR})
