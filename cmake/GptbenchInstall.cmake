# bin/gptbench, bin/gptpost, the library of CUDA kernels where there is one; decks, job scripts and documentation
# under share/gptbench; man pages and completion where shells look for them; a module file
# (share/modulefiles); and a CMake package, so that
#
#   find_package(gptbench REQUIRED)
#   add_custom_target(measure COMMAND ... gptbench::gptbench deck.in)
#
# finds the programs: gptbench::gptbench, gptbench::gptpost, gptbench_DATA_DIR.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(programs)
foreach(program gptbench gptpost)
  if(TARGET ${program})
    list(APPEND programs ${program})
  endif()
endforeach()
if(programs)
  # Libraries outside the system's folders are found without LD_LIBRARY_PATH, as in the build.
  set_target_properties(${programs} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${programs} EXPORT gptbench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(TARGET gptbench_cuda_kernels)
    install(TARGETS gptbench_cuda_kernels LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
    set_target_properties(${programs} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
  endif()
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gptbench)
  install(EXPORT gptbench NAMESPACE gptbench:: FILE gptbenchTargets.cmake DESTINATION ${package})
  set(gptbench_data ${CMAKE_INSTALL_DATADIR}/gptbench)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/gptbenchConfig.cmake.in
    ${CMAKE_BINARY_DIR}/gptbenchConfig.cmake INSTALL_DESTINATION ${package} PATH_VARS gptbench_data)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/gptbenchConfigVersion.cmake COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/gptbenchConfig.cmake ${CMAKE_BINARY_DIR}/gptbenchConfigVersion.cmake
    DESTINATION ${package})
endif()
foreach(folder input jobscripts doc)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder})
    # Not with the permissions of the clone, which its owner's umask has made.
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/gptbench
      PATTERN local.in EXCLUDE)  # a profile of the machine that builds
  endif()
endforeach()
install(PROGRAMS ${PROJECT_SOURCE_DIR}/jobscripts/scaling_study.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/gptbench/jobscripts)
# What pages of doc/ lead to.
foreach(file README.md CONTRIBUTING.md CITATION.cff cuda/README.md test/README.md test/bench/README.md test/fuzz/README.md)
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/gptbench/${folder})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/test/reference DESTINATION ${CMAKE_INSTALL_DATADIR}/gptbench/test)
# The licence is the text that input/text_short.in trains on, too.
foreach(folder doc/gptbench gptbench gptbench/input)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/modulefile.in ${CMAKE_BINARY_DIR}/modulefile @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/modulefile RENAME ${PROJECT_VERSION}
  DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/gptbench)
install(FILES ${PROJECT_SOURCE_DIR}/doc/man/gptbench.1 ${PROJECT_SOURCE_DIR}/doc/man/gptpost.1
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
# bash-completion loads a file by the name of the command.
foreach(program gptbench gptpost)
  install(FILES ${PROJECT_SOURCE_DIR}/doc/completion/gptbench.bash RENAME ${program}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endforeach()
