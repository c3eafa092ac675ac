#!/bin/bash
# The program for A64FX, cross-compiled and run by qemu with 512-bit SVE: unit tests of arithmetic and
# kernels, messages and checks on two ranks, and a run that must be VALID.
#
# Needs GPTBENCH_SOURCE_DIR, BUILD (a folder for the build, kept between runs), GENERATOR and JOBS.
set -u
# shellcheck source=/dev/null
source "$GPTBENCH_SOURCE_DIR/test/slurm/jobs.sh"
for command in aarch64-linux-gnu-g++ qemu-aarch64 dpkg-deb; do
  if ! command -v "$command" >/dev/null; then
    echo "skipped: $command was not found (Debian: apt-get install g++-aarch64-linux-gnu qemu-user)"
    exit 77
  fi
done
sysroot=$GPTBENCH_SOURCE_DIR/build/aarch64-sysroot
if ! sh "$GPTBENCH_SOURCE_DIR/cmake/aarch64/sysroot.sh" "$sysroot" >sysroot.log 2>&1; then
  echo "skipped: Debian's arm64 packages are not to be had: $(tail -n 1 sysroot.log)"
  exit 77
fi

tests=(base_dtype base_fp8 base_random kernels_device kernels_host comm_all_reduce verify_checks)
{
  cmake -S "$GPTBENCH_SOURCE_DIR" --preset aarch64 -B "$BUILD" -G "$GENERATOR" -DGPTBENCH_SYSROOT="$sysroot" -DGPTBENCH_WERROR=ON \
    && cmake --build "$BUILD" --target gptbench "${tests[@]/#/test_}" --parallel "$JOBS"
} >build.log 2>&1 || {
  echo "FAILED: the build"
  tail -n 30 build.log
  exit 1
}

# Large GEMMs, and attention with many tiles, take minutes in an emulator.
export GTEST_FILTER='-*Linear*:Bf16Products*:*Threads*:HostAttention*EqualsReference:HostAttention*BlocksOfKeys*'
ctest --test-dir "$BUILD" --output-on-failure --no-tests=error \
  -R '^(base_(dtype|fp8|random)|kernels_(device|host)|(comm_all_reduce|verify_checks)_n2)$' >ctest.log 2>&1 || fail "tests: $(tail -n 30 ctest.log)"
grep '[0-9] tests failed out of' ctest.log

cat >small.in <<'DECK'
&run name = 'small', steps = 3, warmup_steps = 1 /
&model num_layers = 2, hidden_size = 64, num_attention_heads = 2, seq_length = 32, vocab_size = 256 /
&batch micro_batch_size = 1, global_batch_size = 4 /
&output peak_tflops = 0.1 /
DECK
emulator=(qemu-aarch64 -L "$sysroot" -cpu a64fx)
read -r -a launch <<<"$GPTBENCH_LAUNCH 2"
"${launch[@]}" "${emulator[@]}" "$BUILD/bin/gptbench" small.in >run.out 2>&1 || fail "a run on two ranks: $(tail -n 5 run.out)"
contains run.out 'f32 GEMMs: OpenBLAS'
contains run.out 'GPTBENCH status=OK verdict=VALID .* ranks=2 '
finish
