# One target a folder of src/. A layer sees its own headers and those of the layers that it names in
# DEPENDS (and of theirs): each layer publishes an include root that holds a link to its own folder
# alone, so that an #include against the order of the layers does not compile.
#
#   gptbench_layer(plan SOURCES grid.cpp model.cpp DEPENDS deck [PRIVATE_LIBRARIES ...])
function(gptbench_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_LIBRARIES;PUBLIC_LIBRARIES" ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/include_roots/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)

  add_library(gptbench_${name} STATIC ${ARG_SOURCES})
  target_include_directories(gptbench_${name} PUBLIC ${root})
  foreach(layer IN LISTS ARG_DEPENDS)
    target_link_libraries(gptbench_${name} PUBLIC gptbench_${layer})
  endforeach()
  target_link_libraries(gptbench_${name} PUBLIC ${ARG_PUBLIC_LIBRARIES} PRIVATE gptbench_warnings ${ARG_PRIVATE_LIBRARIES})
endfunction()
