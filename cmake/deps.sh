#!/bin/sh
# deps.sh run|test: installs what building and running (and testing) need from the packages of Debian
# or Ubuntu. Does nothing when all is there. Without root and sudo it prints what is missing, the
# equivalent for Spack and modules, and ends with status 1.
set -eu

purpose=${1:-run}
case $purpose in
  run | test) ;;
  *)
    echo "usage: deps.sh run|test" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "deps: not a Debian or Ubuntu system; CMake will say what is missing"
  exit 0
fi

missing=
wanted=

installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

# need PACKAGE [ALTERNATIVE ...]: one of them is installed, or the first that apt knows is wanted.
need() {
  for package in "$@"; do
    if installed "$package"; then return; fi
  done
  missing="$missing $(echo "$@" | tr ' ' '|')"
}

# Whether apt has a version of PACKAGE to install; `apt-cache show` also accepts a name that only other
# packages mention, as Ubuntu 24.04's do python3-torch.
known() {
  [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]
}

# want PACKAGE: where the distribution has it (Ubuntu 24.04 has no PyTorch); tests say when they miss it.
want() {
  wanted="$wanted $1"
  if known "$1"; then need "$1"; fi
}

# need_command COMMAND PACKAGE [ALTERNATIVE ...]: a program, wherever it comes from.
need_command() {
  command=$1
  shift
  if ! command -v "$command" >/dev/null 2>&1; then need "$@"; fi
}

# Open MPI, unless MPICH is what this machine has.
mpi="libopenmpi-dev openmpi-bin libhdf5-openmpi-dev"
if installed libmpich-dev && ! installed libopenmpi-dev; then
  mpi="libmpich-dev mpich libhdf5-mpich-dev"
fi

need_command c++ g++
need_command cmake cmake
need_command ninja ninja-build
for package in $mpi; do need "$package"; done
need libtrilinos-kokkos-dev libkokkos-dev
need libdnnl-dev
need nlohmann-json3-dev
if [ "$purpose" = test ]; then
  need libgtest-dev
  need libblas-dev libopenblas-dev
  need_command gfortran gfortran
  want python3-torch
  need python3-numpy
  need python3-h5py
  need_command h5dump hdf5-tools
  need_command rsvg-convert librsvg2-bin
  need_command pdflatex texlive-latex-base
  # Opens reports in the tests.
  want chromium
  need_command clang-format-14 clang-format-14
  need_command shellcheck shellcheck
  # libFuzzer comes with clang, in a package of its own.
  need_command clang++ clang
  want libclang-rt-dev
  need_command fio fio
  need_command valgrind valgrind
  need_command git git
  need_command mandoc mandoc
  want environment-modules
  # Collectives of a step, simulated.
  want libsimgrid-dev
  # The build for Arm, tested in an emulator.
  need_command aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
  need_command qemu-aarch64 qemu-user
  # Job scripts are tested on a Slurm cluster of the test's own, with Open MPI and with MPICH.
  need_command sbatch slurm-wlm
  need_command munged munge
  for package in libpmix-dev libmpich-dev mpich libhdf5-mpich-dev; do need "$package"; done
fi

if [ -z "$missing" ]; then exit 0; fi

as_root=
if [ "$(id -u)" != 0 ]; then
  # With a terminal sudo may ask for a password, which does not help a user who has no right to it.
  if command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }; then
    as_root=sudo
  else
    first=$(for choice in $missing; do echo "${choice%%|*}"; done | tr '\n' ' ')
    cat >&2 <<END
deps: packages are missing, and installing them needs root or sudo. As root:
    apt-get update && apt-get install --no-install-recommends $first
With Spack:
    spack install gcc cmake ninja openmpi hdf5 kokkos +openmp onednn nlohmann-json googletest
    spack load cmake ninja openmpi hdf5 kokkos onednn nlohmann-json googletest
With modules: load a C++17 compiler (GCC 9 or later), CMake 3.22, MPI, HDF5, Kokkos, oneDNN and nlohmann-json, then: make DEPS=no ...
    (Kokkos_ROOT, OneDNN_ROOT and HDF5_ROOT in the environment name installations)
END
    exit 1
  fi
fi

echo "deps: installing$(echo "$missing" | sed 's/|[^ ]*//g')"
$as_root apt-get update -qq
packages=
for choice in $missing; do
  chosen=
  for package in $(echo "$choice" | tr '|' ' '); do
    if [ -z "$chosen" ] && known "$package"; then chosen=$package; fi
  done
  if [ -z "$chosen" ]; then
    echo "deps: this distribution has no package $choice; see CONTRIBUTING.md for installations of one's own" >&2
    exit 1
  fi
  packages="$packages $chosen"
done
for package in $wanted; do
  if known "$package"; then
    packages="$packages $package"
  else
    echo "deps: this distribution has no $package; the tests that need it will say so"
  fi
done
# shellcheck disable=SC2086  # lists of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  -o DPkg::Lock::Timeout=300 $packages
