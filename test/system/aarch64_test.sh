#!/bin/bash
# The program for A64FX, cross-compiled and run by qemu with 512-bit SVE: unit tests of arithmetic and
# kernels, messages and checks on two ranks, and a run that must be VALID.
#
# Needs GPTBENCH_SOURCE_DIR, BUILD (the folder of aarch64_build.sh), GENERATOR and JOBS.
set -u
# shellcheck source=/dev/null
source "$GPTBENCH_SOURCE_DIR/test/slurm/jobs.sh"
sh "$GPTBENCH_SOURCE_DIR/test/system/aarch64_build.sh" "$GPTBENCH_SOURCE_DIR" "$BUILD" || exit
sysroot=$GPTBENCH_SOURCE_DIR/build/aarch64-sysroot

# Large GEMMs, attention with many tiles and arrays of fp8 take minutes in an emulator. base_fp8 has the
# conversions. fp16 has bf16's kernels with other conversions, which base_dtype has. Normal numbers have the bits
# of other machines (GoldenBits), and so their moments.
fp16_twins=()
for name in AdamW Convert CrossEntropy LayerNorm Norms ResidualAndDropout RmsNorm Rotary; do
  fp16_twins+=(":HostKernel/2.$name*")
done
skipped=(HostKernel*Fp8* :*Linear* :Bf16Products* :*Threads* :HostAttention*EqualsReference
  :HostAttention*BlocksOfKeys* :HostAttention/2.FewQueries* :HostAttention/2.OfLarge* "${fp16_twins[@]}"
  :HostKernel*SquaredNormOfMore* :HostKernel/0.NormsForm* :FillNormal.Moments :FillNormal.Tails)
GTEST_FILTER=-$(printf '%s' "${skipped[@]}")
export GTEST_FILTER
ctest --test-dir "$BUILD" --parallel 2 --output-on-failure --no-tests=error \
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
