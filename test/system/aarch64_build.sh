#!/bin/sh
# aarch64_build.sh SOURCE_DIR BUILD: cross-compiles gptbench and some tests for A64FX, in the folder BUILD, which
# is kept between runs; warnings are errors. They are compiled as C++20, which other builds are not, so that the
# sources stay valid in both. Status 77, with the reason, where the cross compiler or Debian's packages are
# missing. GENERATOR and JOBS are those of the build. All but kernels compiles without optimisation and in
# bundles of up to 32 files (unity), in half the time: names in unnamed namespaces of a folder must differ. That
# each file includes what it needs is seen in the other builds.
set -eu
source=$1
build=$2
for command in aarch64-linux-gnu-g++ qemu-aarch64 dpkg-deb; do
  if ! command -v "$command" >/dev/null; then
    echo "skipped: $command was not found (Debian: apt-get install g++-aarch64-linux-gnu qemu-user)"
    exit 77
  fi
done
mkdir -p "$build"
sysroot=$source/build/aarch64-sysroot
if ! sh "$source/cmake/aarch64/sysroot.sh" "$sysroot" >"$build/sysroot.log" 2>&1; then
  echo "skipped: Debian's arm64 packages are not to be had: $(tail -n 1 "$build/sysroot.log")"
  exit 77
fi
set -- test_base_dtype test_base_fp8 test_base_random test_kernels_device test_kernels_host test_comm_all_reduce test_verify_checks
{
  cmake -S "$source" --preset aarch64 -B "$build" -G "$GENERATOR" -DGPTBENCH_SYSROOT="$sysroot" -DGPTBENCH_WERROR=ON -DCMAKE_CXX_STANDARD=20 \
    -DCMAKE_CXX_FLAGS_RELEASE='-O0 -DNDEBUG' -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=32 \
    && cmake --build "$build" --parallel "$JOBS" --target gptbench "$@"
} >"$build/build.log" 2>&1 || {
  echo "FAILED: the build for aarch64"
  tail -n 30 "$build/build.log"
  exit 1
}
