#!/bin/sh
# mpich_build.sh SOURCE_DIR BUILD OTHER_BUILD: builds gptbench with MPICH in the folder BUILD, which is kept between
# runs, from sources that know of MPI and the objects of another build. Status 77, with the reason, where there is
# no MPICH. CXX, GENERATOR and JOBS are those of the build.
set -eu
source=$1
build=$2
other=$3
for command in mpicxx.mpich mpiexec.mpich; do
  if ! command -v "$command" >/dev/null; then
    echo "skipped: $command was not found (Debian, Ubuntu: apt-get install libmpich-dev mpich libhdf5-mpich-dev)"
    exit 77
  fi
done
mkdir -p "$build"
# What is compiled here computes nothing: without optimisation it takes half the time.
{
  cmake -S "$source" -B "$build" -G "$GENERATOR" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 \
    -DCMAKE_CXX_COMPILER="$CXX" -DMPI_CXX_COMPILER="$(command -v mpicxx.mpich)" \
    -DMPIEXEC_EXECUTABLE="$(command -v mpiexec.mpich)" -DGPTBENCH_TOP_LINKS=OFF -DGPTBENCH_CUDA=OFF \
    -DBUILD_TESTING=OFF -DGPTBENCH_LAYERS_FROM="$other" &&
    cmake --build "$build" --parallel "$JOBS" --target gptbench
} >"$build/build.log" 2>&1 || {
  echo "FAILED: the build with MPICH"
  tail -n 30 "$build/build.log"
  exit 1
}
