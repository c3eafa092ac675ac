# One target per folder of src/. A layer sees its own headers and those of the layers that it names in
# DEPENDS (and of theirs): each layer publishes an include root that holds a link to its own folder
# alone, so that an #include against the order of the layers does not compile. SEES names layers whose
# headers it includes and whose library the program links (the CUDA back end, or its emulation).
#
#   gptbench_layer(plan SOURCES grid.cpp model.cpp DEPENDS deck [SEES cuda] [PRIVATE_LIBRARIES ...])

# The order of the design: GPTBENCH_BELOW_<layer> names what a layer may depend on. `cuda` is the
# folder at the top of the tree; every other layer is a folder of src/.
set(GPTBENCH_LAYERS base record measure deck plan project device comm memory data engine verify io weights checkpoint run calibrate post sweep)
set(GPTBENCH_BELOW_base)
set(GPTBENCH_BELOW_record base)
set(GPTBENCH_BELOW_measure base)
set(GPTBENCH_BELOW_deck base)
set(GPTBENCH_BELOW_plan base deck)
set(GPTBENCH_BELOW_project base record deck plan)
set(GPTBENCH_BELOW_device base deck plan)
set(GPTBENCH_BELOW_comm base deck plan device)
set(GPTBENCH_BELOW_cuda base deck plan device comm)
set(GPTBENCH_BELOW_memory base deck plan device comm)
set(GPTBENCH_BELOW_data base deck plan device)
set(GPTBENCH_BELOW_engine base deck plan device comm memory data)
set(GPTBENCH_BELOW_verify base record deck plan device comm memory data engine)
set(GPTBENCH_BELOW_io base record)
set(GPTBENCH_BELOW_weights base record deck plan io)
set(GPTBENCH_BELOW_checkpoint base record deck plan device comm memory data engine io weights)
set(GPTBENCH_BELOW_run base record measure deck plan project device comm cuda memory data engine verify io weights checkpoint)
set(GPTBENCH_BELOW_calibrate base record measure deck plan project device comm cuda memory data engine verify io weights checkpoint run)
set(GPTBENCH_BELOW_post base record deck plan project io weights)
set(GPTBENCH_BELOW_sweep base record measure deck plan project device comm cuda memory data engine verify io weights checkpoint run)

# The folder of a build that differs in its MPI library alone: all but the layers that know of MPI is
# taken from there as it was compiled.
set(GPTBENCH_LAYERS_FROM "" CACHE PATH "Build folder to take objects from (test/slurm/mpich_build.sh)")
set(GPTBENCH_MPI_LAYERS base comm io cuda)  # base names its version, io includes HDF5, and CUDA is off

function(gptbench_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;SEES;PRIVATE_LIBRARIES;PUBLIC_LIBRARIES" ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/include_roots/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)

  if(GPTBENCH_LAYERS_FROM AND NOT name IN_LIST GPTBENCH_MPI_LAYERS)
    file(GLOB_RECURSE ARG_SOURCES ${GPTBENCH_LAYERS_FROM}/src/${name}/CMakeFiles/gptbench_${name}.dir/*.o)
  endif()
  add_library(gptbench_${name} STATIC ${ARG_SOURCES})
  set_target_properties(gptbench_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(gptbench_${name} PUBLIC ${root})
  foreach(layer IN LISTS ARG_DEPENDS ARG_SEES)
    if(NOT layer IN_LIST GPTBENCH_BELOW_${name})
      message(FATAL_ERROR "layer ${name} must not depend on ${layer}; it may on: ${GPTBENCH_BELOW_${name}}")
    endif()
    if(layer IN_LIST ARG_SEES)
      target_include_directories(gptbench_${name} PUBLIC ${CMAKE_BINARY_DIR}/include_roots/${layer})
    else()
      target_link_libraries(gptbench_${name} PUBLIC gptbench_${layer})
    endif()
  endforeach()
  target_link_libraries(gptbench_${name} PUBLIC ${ARG_PUBLIC_LIBRARIES} PRIVATE gptbench_warnings ${ARG_PRIVATE_LIBRARIES})
endfunction()
