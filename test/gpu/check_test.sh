#!/bin/bash
# check.sh with programs that only print, in the place of a bundle's: calls and their seconds, what it makes of
# results, and what it does about a program that hangs.
# shellcheck disable=SC2016  # programs are written here, not expanded
set -u
here=$GPTBENCH_SOURCE_DIR/test/gpu
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

rm -rf bundle tools seen
mkdir -p bundle/bin bundle/input bundle/test/gpu bundle/test/bench tools
cp "$here/check.sh" "$here/step_kernels.py" bundle/test/gpu/
printf '#!/bin/sh\nshift\nPATH=%s:$PATH exec "$@"\n' "$PWD/bundle/bin" >bundle/launch
program() { { echo '#!/bin/bash'; cat; } >"$1" && chmod +x "$1"; }
program bundle/bin/gptbench <<'END'
[ "$1" = --version ] && echo "gptbench 0" && exit
for word in "$@"; do case $word in output.directory=*) mkdir -p "${word#*=}" && touch "${word#*=}/result.h5" ;; esac; done
printf '     1/3 11.0 2.0\nGPTBENCH status=OK mfu=0.5 %s file=x\n' "$(printf '%s\n' "$@" | sort | tr '\n' ' ')"
END
program bundle/bin/gptpost <<'END'
printf '{"chosen_algorithms": "gemm_library=x\\u000agemm.linear_forward.R8192.K8192.N8192.bf16=fused 1 us 1400.0 tried 16 algorithm 00\\u000aattention.attention_forward.B32=plan 1 us 170.0 native_us 300.0\\u000a"}\n'
END
for name in test_gpu_kernels test_gpu_equivalence bench_cuda_kernels; do
  program "bundle/bin/$name" <<<'echo "copy  100.0  4300.0  100.0"; echo "[  PASSED  ] 3 tests."'
done
program bundle/bin/test_gpu <<<'sleep 60'
program tools/nvidia-smi <<<'echo "1980, 690.5, 62"'
program tools/compute-sanitizer <<'END'
while [ "$1" != gptbench ]; do shift; done
exec "$@"
END
program tools/ncu <<'END'
while [ "$1" != gptbench ]; do [ "$1" = --log-file ] && log=$2; shift; done
"$@"
{
  echo '==PROF== Connected'
  echo '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
  id=0
  for kernel in zero Rows gemm gemm Rows gemm; do
    case $kernel in
      Rows) name='void gptbench::cuda::rows_kernel<gptbench::cuda::(anonymous namespace)::EmbeddingRows<gptbench::bfloat16>, (int)8>(T1, long, long)' ;;
      *) name=$kernel ;;
    esac
    echo "\"$id\",\"1\",\"$name\",\"gpu__time_duration.sum\",\"ns\",\"2,000\""
    echo "\"$id\",\"1\",\"$name\",\"dram__bytes.sum\",\"byte\",\"6,000,000\""
    id=$((id + 1))
  done
} >"$log"
END

bash bundle/test/gpu/check.sh --list >list || fail "--list"
[ "$(bash bundle/test/gpu/check.sh | wc -l)" -eq "$(wc -l <list)" ] || fail "no arguments are not --list"
# Eight minutes with what unpacking and the machine's own start take.
for call in a b c d; do
  seconds=$(awk -v call=$call '$1 == call { sum += $3 } END { print sum }' list)
  if [ "$seconds" -le 0 ] || [ "$seconds" -gt 470 ]; then fail "call $call has $seconds seconds"; fi
done
bash bundle/test/gpu/check.sh nothing >refused 2>&1 && fail "a part that is not there is no failure"
grep -q "no call or part 'nothing'; there are a .*info .*sanitize" refused || fail "a part that is not there: $(cat refused)"

export PATH=$PWD/tools:$PATH PERCENT=6
check() { OUT=$PWD/seen bash bundle/test/gpu/check.sh "$@" >log 2>&1; }
holds() { grep -qE -- "$1" seen/summary.txt || fail "no '$1' in the summary: $(cat seen/summary.txt)"; }
# The program that hangs takes its part's time and no more.
begin=$SECONDS
check a && fail "a program that hangs is no failure"
[ $((SECONDS - begin)) -le 35 ] || fail "call a took $((SECONDS - begin)) s of 28"
holds '^ok +124m \([0-9]+ s.*\)$'
holds '^GPTBENCH status=OK .*batch.global_batch_size=256 batch.micro_batch_size=32 model.preset=gpt2-124m '
holds ' linear_forward.R8192.K8192.N8192.bf16: 1400.0 us, 785 TFLOP/s, fused$'
holds ' attention_forward.B32: plan 1 us 170.0 native_us 300.0$'
holds '^copy +100.0 +4300.0'
holds '^FAILED +test_gpu: status 124'
holds '^(ok|skipped) +350m'
holds '^GPTBENCH .*batch.global_batch_size=16 batch.micro_batch_size=2 model.preset=mpt-7b '
holds '^gemm +2 +4.0 +66.7 +3000$'
holds '^rows_kernel<EmbeddingRows<bfloat16>, 8> +1 +2.0 +33.3 +3000$'
holds '^1 failed, '
tar -tzf seen/logs.tgz | grep -q 'logs/124m.h5' || fail "no result among the logs"

program bundle/bin/test_gpu <<<'sleep 2.5; echo "[  PASSED  ] 1 test."'
PERCENT=20 check tests || fail "tests"
holds '^ok +test_gpu \([0-9]+ s; 1980 MHz, 69[01] W, 62 C\)$'
# Nothing hangs from here on: with all their seconds no part is skipped on a slow machine.
export PERCENT=100
check decks ranks sanitize || fail "decks ranks sanitize"
holds '^ok +graph_is_issued_step'
holds '^ok +racecheck_fp32 '
holds '^0 failed, 0 skipped'
check d || fail "call d"
holds '^ok +calibrate_1.3b'
holds '^ok +resumed '
holds '^GPTBENCH status=OK .* run.duration_s=45 '
holds '^0 failed, 0 skipped'
[ "$failures" -eq 0 ] && echo "check.sh does what it says"
