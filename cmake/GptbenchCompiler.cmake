# Compilers that claim C++17 and lack a part of it. GCC 8, the system's compiler of RHEL 8, keeps std::filesystem in
# a library of its own: programs would compile and not link.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 9)
  message(FATAL_ERROR
    "GCC ${CMAKE_CXX_COMPILER_VERSION} is too old: GCC 9 or later is needed. Load a module, or on RHEL 8 and its kin: "
    "dnf install gcc-toolset-12; source /opt/rh/gcc-toolset-12/enable. Then configure a fresh build folder")
endif()
