# One target a folder of src/. A layer sees its own headers and those of the layers that it names in
# DEPENDS (and of theirs): each layer publishes an include root that holds a link to its own folder
# alone, so that an #include against the order of the layers does not compile.
#
#   gptbench_layer(plan SOURCES grid.cpp model.cpp DEPENDS deck [PRIVATE_LIBRARIES ...])

# The order of the design: GPTBENCH_BELOW_<layer> names what a layer may depend on.
set(GPTBENCH_LAYERS base deck plan device comm memory data measure engine verify io post)
set(GPTBENCH_BELOW_base)
set(GPTBENCH_BELOW_deck base)
set(GPTBENCH_BELOW_plan base deck)
set(GPTBENCH_BELOW_device base deck plan)
set(GPTBENCH_BELOW_comm base deck plan device)
set(GPTBENCH_BELOW_memory base deck plan device comm)
set(GPTBENCH_BELOW_data base deck plan device comm memory)
set(GPTBENCH_BELOW_measure base deck plan device comm memory)
set(GPTBENCH_BELOW_engine base deck plan device comm memory data measure)
set(GPTBENCH_BELOW_verify base deck plan device comm memory data measure engine)
set(GPTBENCH_BELOW_io base deck plan device comm memory measure)
set(GPTBENCH_BELOW_post base deck plan device comm memory measure io)

function(gptbench_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_LIBRARIES;PUBLIC_LIBRARIES" ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/include_roots/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)

  add_library(gptbench_${name} STATIC ${ARG_SOURCES})
  target_include_directories(gptbench_${name} PUBLIC ${root})
  foreach(layer IN LISTS ARG_DEPENDS)
    if(NOT layer IN_LIST GPTBENCH_BELOW_${name})
      message(FATAL_ERROR "layer ${name} must not depend on ${layer}; it may on: ${GPTBENCH_BELOW_${name}}")
    endif()
    target_link_libraries(gptbench_${name} PUBLIC gptbench_${layer})
  endforeach()
  target_link_libraries(gptbench_${name} PUBLIC ${ARG_PUBLIC_LIBRARIES} PRIVATE gptbench_warnings ${ARG_PRIVATE_LIBRARIES})
endfunction()
