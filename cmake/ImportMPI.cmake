# MPI::MPI_CXX (the C interface alone), the flavour of MPI and how its programs are started:
#
#   GPTBENCH_MPI              e.g. "Open MPI 4.1.4"
#   GPTBENCH_LAUNCH           command that a number of ranks and a program follow
#   GPTBENCH_LAUNCH_ENVIRONMENT   VAR=VALUE; what a launched test wants in its environment
#   GPTBENCH_TEST_ENVIRONMENT     VAR=VALUE; what tests alone want
set(MPI_CXX_SKIP_MPICXX ON)
set(MPI_DETERMINE_LIBRARY_VERSION ON)
find_package(MPI COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(FATAL_ERROR
    "MPI was not found. Debian, Ubuntu: apt-get install libopenmpi-dev openmpi-bin; Spack: spack install openmpi; "
    "elsewhere load the site's MPI module, or name its compiler wrapper: -DMPI_CXX_COMPILER=<mpicxx>")
endif()
if(MPI_CXX_VERSION VERSION_LESS 3.1)
  message(FATAL_ERROR "${MPI_CXX_COMPILER} is of MPI ${MPI_CXX_VERSION}: 3.1 or later is needed")
endif()

# "Open MPI v4.1.4, package: ...", "MPICH Version: 4.0.2 ...", "Intel(R) MPI Library 2021.9 ..."
string(REGEX MATCH "^[^\n]*" GPTBENCH_MPI "${MPI_CXX_LIBRARY_VERSION_STRING}")
string(REGEX REPLACE "[\t ]+" " " GPTBENCH_MPI "${GPTBENCH_MPI}")
string(REGEX REPLACE "^(Open MPI) v?([^,]*),.*" "\\1 \\2" GPTBENCH_MPI "${GPTBENCH_MPI}")
string(REGEX REPLACE "^(.*MPICH) Version ?: ?([^ ]*).*" "\\1 \\2" GPTBENCH_MPI "${GPTBENCH_MPI}")
if(NOT GPTBENCH_MPI)
  set(GPTBENCH_MPI "MPI (of unknown make)")
endif()

if(NOT MPIEXEC_EXECUTABLE)
  message(FATAL_ERROR "no MPI launcher (mpiexec, mpirun, srun) was found; name one: -DMPIEXEC_EXECUTABLE=<path>")
endif()
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE launcher ERROR_VARIABLE launcher
  RESULT_VARIABLE ignored)

# Tests start more ranks than a small machine has cores, and containers often forbid binding and
# reading another process's memory; both are settings of Open MPI alone.
set(GPTBENCH_LAUNCH_ENVIRONMENT OMP_NUM_THREADS=1)
set(GPTBENCH_TEST_ENVIRONMENT "")
if(launcher MATCHES "OpenRTE|Open MPI|PRRTE|prte")
  set(launcher_flavour "Open MPI")
  set(GPTBENCH_LAUNCH ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none -n)
  list(APPEND GPTBENCH_LAUNCH_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none)
  # Each of some thousand starts would look for fast networks, and a rank without a launcher start a
  # daemon: 0.2 s each. Ranks that wait leave their processors to the tests beside them.
  set(GPTBENCH_TEST_ENVIRONMENT OMPI_MCA_pml=ob1 OMPI_MCA_ess_singleton_isolated=1
    OMPI_MCA_mpi_yield_when_idle=1)
elseif(launcher MATCHES "^slurm")
  set(launcher_flavour "Slurm")
  set(GPTBENCH_LAUNCH ${MPIEXEC_EXECUTABLE} --overcommit --overlap -n)
else()
  set(launcher_flavour "MPICH")  # Hydra: MPICH, Intel MPI, MVAPICH
  set(GPTBENCH_LAUNCH ${MPIEXEC_EXECUTABLE} -n)
endif()

# Programs of one MPI under the launcher of another start as many worlds of a single rank.
if((GPTBENCH_MPI MATCHES "^Open MPI" AND launcher_flavour STREQUAL "MPICH")
   OR (GPTBENCH_MPI MATCHES "MPICH|Intel" AND launcher_flavour STREQUAL "Open MPI"))
  message(FATAL_ERROR
    "the library is ${GPTBENCH_MPI}, the launcher ${MPIEXEC_EXECUTABLE} is that of ${launcher_flavour}; "
    "name the two together: -DMPI_CXX_COMPILER=<mpicxx> -DMPIEXEC_EXECUTABLE=<mpiexec>")
endif()

# For people and scripts: <build folder>/launch RANKS PROGRAM [ARGUMENTS]
string(REPLACE ";" " " launch_command "${GPTBENCH_LAUNCH}")
set(launch_exports "")
foreach(setting IN LISTS GPTBENCH_LAUNCH_ENVIRONMENT)
  if(NOT setting MATCHES "^OMP_")
    string(APPEND launch_exports "export ${setting}\n")
  endif()
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/launch
  "#!/bin/sh\n# launch RANKS PROGRAM [ARGUMENTS]: starts an MPI program (${GPTBENCH_MPI})\n"
  "${launch_exports}exec ${launch_command} \"$@\"\n")
file(CHMOD ${CMAKE_BINARY_DIR}/launch PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
