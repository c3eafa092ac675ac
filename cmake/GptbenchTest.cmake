# Registration of tests with CTest. Every test runs in a folder of its own (so that tests may run at
# the same time) and is killed after TIMEOUT seconds (a hung rank must not hang the suite). Scripts end
# a command after GPTBENCH_COMMAND_S. Compiled tests know GPTBENCH_SOURCE_DIR, the top of the tree.
#
# What begins first, so that no processor waits at the end: those that mostly wait, those with several ranks, the
# longest. CTest's PROCESSORS would keep those with several ranks back until nothing is left to run beside them.

string(SHA1 scratch_name ${CMAKE_BINARY_DIR})
string(SUBSTRING ${scratch_name} 0 8 scratch_name)
set(GPTBENCH_TEST_SCRATCH /tmp/gptbench_tests_${scratch_name})
if(DEFINED ENV{TMPDIR})
  set(GPTBENCH_TEST_SCRATCH $ENV{TMPDIR}/gptbench_tests_${scratch_name})
endif()

# Tests that start ranks, and scripts, have a session each. Linux shares processors among sessions before it shares
# them among processes (autogroup): ranks that wait then give way to each other at once. With other tests in the same
# session every message waits for the turns of all. An interrupt from the keyboard does not reach other sessions; it
# ends setsid, and setpriv lets the test end with that.
find_program(GPTBENCH_SETSID setsid)
find_program(GPTBENCH_SETPRIV setpriv)
mark_as_advanced(GPTBENCH_SETSID GPTBENCH_SETPRIV)
set(GPTBENCH_SESSION)
if(GPTBENCH_SETSID AND GPTBENCH_SETPRIV)
  set(GPTBENCH_SESSION ${GPTBENCH_SETSID} --wait ${GPTBENCH_SETPRIV} --pdeathsig TERM)
endif()

function(gptbench_set_test_properties name ranks timeout)
  set(folder ${CMAKE_BINARY_DIR}/test_work/${name})
  file(MAKE_DIRECTORY ${folder})
  set(labels ${ARGN})
  list(REMOVE_DUPLICATES labels)
  if(NOT timeout)
    set(timeout 1800)
  endif()
  set(command_timeout 180)
  if(CMAKE_CROSSCOMPILING OR GPTBENCH_SANITIZE)  # emulated, or slow
    math(EXPR timeout "10 * ${timeout}")
    math(EXPR command_timeout "10 * ${command_timeout}")
  endif()
  # Each test measures its own GEMM ceiling: what earlier runs left would change what it sees.
  set(environment ${GPTBENCH_LAUNCH_ENVIRONMENT} ${GPTBENCH_TEST_ENVIRONMENT} GPTBENCH_CEILINGS=none
    GPTBENCH_COMMAND_S=${command_timeout})
  # Open MPI 4 removes the folder that its jobs share when one ends, while another may be about to
  # write there (its issue 8510): each test has its own. Not in the build tree, which a network file
  # system may hold: Open MPI warns of that.
  list(APPEND environment OMPI_MCA_orte_tmpdir_base=${GPTBENCH_TEST_SCRATCH}/${name})
  if(GPTBENCH_SANITIZE)
    list(APPEND environment UBSAN_OPTIONS=print_stacktrace=1)
    # MPI libraries are not compiled for it: what they lock and free is not seen.
    list(APPEND environment
      TSAN_OPTIONS=allocator_may_return_null=1:ignore_noninstrumented_modules=1:suppressions=${PROJECT_SOURCE_DIR}/test/system/tsan.supp)
    # MPI libraries keep memory until the process ends, in modules that are gone by then.
    get_test_property(${name} GPTBENCH_STARTS_MPI starts_mpi)
    if(starts_mpi)
      list(APPEND environment ASAN_OPTIONS=detect_leaks=0)
    endif()
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" ENVIRONMENT "${environment}"
    WORKING_DIRECTORY ${folder} TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
  if(ranks GREATER 1)  # ranks that wait for each other keep asking: those of one test at a time
    set_property(TEST ${name} APPEND PROPERTY RESOURCE_LOCK several_ranks)
    set_tests_properties(${name} PROPERTIES COST 230)
  endif()
endfunction()

# GoogleTest's header, a second of each test's compilation, is compiled once for all that have the same `level` of
# optimisation. (ccache keeps tests where its sloppiness holds pch_defines and time_macros.)
function(gptbench_precompile_gtest level target)
  set(header gptbench_gtest${level})
  if(NOT TARGET ${header})
    file(WRITE ${CMAKE_BINARY_DIR}/test/gtest_header.cpp "")
    add_library(${header} OBJECT ${CMAKE_BINARY_DIR}/test/gtest_header.cpp)
    target_link_libraries(${header} PRIVATE gptbench_warnings GTest::gtest)
    target_compile_options(${header} PRIVATE ${level})
    target_precompile_headers(${header} PRIVATE <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${header})
endfunction()

# How test programs, and objects that several of them share, are compiled: what is tested as it ships, tests
# themselves at `level` -O0, in four fifths of the time that -O1 takes, which is for those that loop over data.
function(gptbench_compile_as_test target level)
  target_link_libraries(${target} PRIVATE ${ARGN} gptbench_warnings GTest::gtest)
  target_compile_definitions(${target} PRIVATE GPTBENCH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(${target} PRIVATE ${level})
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)  # names of several files may be equal
  gptbench_precompile_gtest(${level} ${target})
endfunction()

# A GoogleTest program; RANKS (or MPI) starts it through the MPI launcher with the main function of
# test/mpi_main.cpp. Several rank counts (RANKS 1 2 4) register one test each, named <name>_n<ranks>.
# SHARDS 2 (without RANKS) divides its test cases among tests <name>_s1 and <name>_s2. ARGUMENTS
# follow the program. LOOPS: test cases that compute much themselves. Labels: unit (or mpi) unless others are given, mpi
# always with ranks.
#
#   gptbench_test(deck_namelist SOURCES namelist_test.cpp LIBRARIES gptbench_deck [RANKS 4 | SHARDS 2]
#                 [ARGUMENTS ...] [LOOPS] [LABELS oracle] [TIMEOUT 600])
function(gptbench_test name)
  cmake_parse_arguments(ARG "LOOPS;MPI" "TIMEOUT;SHARDS" "RANKS;SOURCES;LIBRARIES;LABELS;ARGUMENTS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gptbench_test(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(ARG_MPI AND NOT ARG_RANKS)
    set(ARG_RANKS 1)
  endif()
  add_executable(test_${name} ${ARG_SOURCES})
  set(level -O0)
  if(ARG_LOOPS)
    set(level -O1)
  endif()
  gptbench_compile_as_test(test_${name} ${level} ${ARG_LIBRARIES})
  if(NOT ARG_RANKS)
    target_link_libraries(test_${name} PRIVATE GTest::gtest_main)
    if(NOT ARG_LABELS)
      set(ARG_LABELS unit)
    endif()
    if(NOT ARG_SHARDS)
      add_test(NAME ${name} COMMAND test_${name} ${ARG_ARGUMENTS})
      gptbench_set_test_properties(${name} 1 "${ARG_TIMEOUT}" ${ARG_LABELS})
      return()
    endif()
    foreach(shard RANGE 1 ${ARG_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${name}_s${shard} COMMAND test_${name} ${ARG_ARGUMENTS})
      gptbench_set_test_properties(${name}_s${shard} 1 "${ARG_TIMEOUT}" ${ARG_LABELS})
      set_property(TEST ${name}_s${shard} APPEND PROPERTY ENVIRONMENT
        GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=${index})
    endforeach()
    return()
  endif()
  target_link_libraries(test_${name} PRIVATE gptbench_mpi_main MPI::MPI_CXX)
  list(LENGTH ARG_RANKS variants)
  foreach(ranks IN LISTS ARG_RANKS)
    set(test ${name})
    if(variants GREATER 1)
      set(test ${name}_n${ranks})
    endif()
    add_test(NAME ${test} COMMAND ${GPTBENCH_SESSION} ${GPTBENCH_LAUNCH} ${ranks} ${CMAKE_CROSSCOMPILING_EMULATOR}
      $<TARGET_FILE:test_${name}> ${ARG_ARGUMENTS})
    set_tests_properties(${test} PROPERTIES GPTBENCH_STARTS_MPI ON)
    gptbench_set_test_properties(${test} ${ranks} "${ARG_TIMEOUT}" ${ARG_LABELS} mpi)
  endforeach()
endfunction()

# A command (a script, mostly) as a test; it fails with its exit status, 77 means skipped (the reason
# printed). Its environment holds GPTBENCH and GPTPOST (the programs), GPTBENCH_LAUNCH (a command
# that a number of ranks and a program follow), GPTBENCH_SOURCE_DIR and GPTBENCH_BINARY_DIR.
# A script that mostly waits (for deadlines, for a batch system) has WAITS and a name: of those with one name, one runs
# at a time. LONG: among those that take longest.
#
#   gptbench_command_test(system_usage COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/usage_test.sh
#                         [LONG | WAITS stops] [LABELS mpi] [TIMEOUT 600])
#
# Not in a cross build: scripts start the programs as those of this machine.
function(gptbench_command_test name)
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  cmake_parse_arguments(ARG "LONG" "TIMEOUT;WAITS" "COMMAND;LABELS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gptbench_command_test(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  string(REPLACE ";" " " launch "${GPTBENCH_LAUNCH}")
  set(programs)
  foreach(program gptbench gptpost)
    if(TARGET ${program})
      string(TOUPPER ${program} variable)
      list(APPEND programs ${variable}=$<TARGET_FILE:${program}>)
    endif()
  endforeach()
  add_test(NAME ${name} COMMAND ${GPTBENCH_SESSION} ${CMAKE_COMMAND} -E env ${programs} "GPTBENCH_LAUNCH=${launch}"
    GPTBENCH_SOURCE_DIR=${PROJECT_SOURCE_DIR} GPTBENCH_BINARY_DIR=${CMAKE_BINARY_DIR} ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES GPTBENCH_STARTS_MPI ON)
  gptbench_set_test_properties(${name} 1 "${ARG_TIMEOUT}" ${ARG_LABELS})
  if(ARG_WAITS)
    set_property(TEST ${name} APPEND PROPERTY RESOURCE_LOCK waits_${ARG_WAITS})
    set_tests_properties(${name} PROPERTIES COST 250)
  endif()
  if(ARG_LONG)
    set_tests_properties(${name} PROPERTIES COST 220)
  endif()
endfunction()

# Sets `result` to a Python that imports the modules named, or to "" where there is none: a machine
# can hold several interpreters, and Debian's packages belong to Debian's own.
#
#   gptbench_find_python(GPTBENCH_PYTHON_TORCH torch numpy)
function(gptbench_find_python result)
  if(${result})
    return()
  endif()
  find_program(python_on_path NAMES python3 NO_CACHE)
  string(REPLACE ";" ", " imports "${ARGN}")
  foreach(python ${Python3_EXECUTABLE} /usr/bin/python3 ${python_on_path} /usr/local/bin/python3)
    if(EXISTS ${python})
      execute_process(COMMAND ${python} -c "import ${imports}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
      if(status EQUAL 0)
        set(${result} ${python} CACHE FILEPATH "A Python that imports ${imports}" FORCE)
        return()
      endif()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

# A benchmark: a program that prints what a part of gptbench reaches beside what the machine can do.
# Built by the target `benchmarks`, run by `bench` (make bench) one after the other; never a test.
# RANKS starts it through the MPI launcher (it then brings its own MPI_Init).
#
#   gptbench_benchmark(gemm SOURCES gemm_bench.cpp LIBRARIES gptbench_device [RANKS 2] [ARGUMENTS ...])
add_custom_target(benchmarks)
add_custom_target(bench)
function(gptbench_benchmark name)
  cmake_parse_arguments(ARG "" "RANKS" "SOURCES;LIBRARIES;ARGUMENTS" ${ARGN})
  add_executable(bench_${name} ${ARG_SOURCES})
  target_link_libraries(bench_${name} PRIVATE ${ARG_LIBRARIES} gptbench_warnings)
  set(launch)
  if(ARG_RANKS)
    target_link_libraries(bench_${name} PRIVATE MPI::MPI_CXX)
    set(launch ${CMAKE_BINARY_DIR}/launch ${ARG_RANKS})
  endif()
  add_custom_target(run_bench_${name} COMMAND ${launch} $<TARGET_FILE:bench_${name}> ${ARG_ARGUMENTS}
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR} USES_TERMINAL VERBATIM)
  add_dependencies(benchmarks bench_${name})
  add_dependencies(bench run_bench_${name})
endfunction()
