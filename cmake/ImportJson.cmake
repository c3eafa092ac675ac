# gptbench_json: nlohmann's JSON for C++, headers alone. nlohmann_json_ROOT names another installation.
find_package(nlohmann_json 3.2 QUIET)
if(NOT nlohmann_json_FOUND)
  message(FATAL_ERROR
    "nlohmann-json was not found. Debian, Ubuntu: apt-get install nlohmann-json3-dev; Spack: spack install "
    "nlohmann-json; an installation of its own: -Dnlohmann_json_ROOT=<prefix>")
endif()
add_library(gptbench_json INTERFACE)
target_link_libraries(gptbench_json INTERFACE nlohmann_json::nlohmann_json)
