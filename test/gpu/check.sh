#!/bin/bash
# check.sh [PART ...]: everything that is to be seen on a machine with a GPU, from a bundle (make bundle)
# that was copied there. Parts: info tests decks sanitize ranks bench; all without arguments. Each part
# has a time limit, writes its log to $OUT (default: ./gpu_check) and one line or more to
# $OUT/summary.txt, which is printed at the end. Status 0 when nothing failed.
#
#   OUT=/tmp/seen test/gpu/check.sh tests decks
set -u

GPTBENCH_BUNDLE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export GPTBENCH_BUNDLE
# shellcheck source=/dev/null  # made by cmake/bundle.sh
. "$GPTBENCH_BUNDLE/environment"

# Libraries of CUDA: an installation, or those that Python packages bring along.
cuda_library_folders() {
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib; do
    if [ -e "$folder" ]; then echo "$folder"; fi
  done
  for python in python3 /opt/*/.venv/bin/python3 /opt/*/bin/python3; do
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null) || continue
    ls -d "$site"/nvidia/*/lib 2>/dev/null
  done
}
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(cuda_library_folders | sort -u | paste -sd:)
export LD_LIBRARY_PATH

OUT=${OUT:-$PWD/gpu_check}
mkdir -p "$OUT"
summary=$OUT/summary.txt
: >"$summary"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

say() { echo "$*" | tee -a "$summary"; }

# try NAME SECONDS COMMAND...: runs it with a limit; its log is $OUT/NAME.log.
try() {
  local name=$1 limit=$2 start=$SECONDS status=0
  shift 2
  timeout -k 10 "$limit" "$@" >"$OUT/$name.log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then
    say "ok      $name ($((SECONDS - start)) s)"
  else
    say "FAILED  $name: status $status after $((SECONDS - start)) s; $(grep -v '^ *$' "$OUT/$name.log" | tail -n 1 | cut -c1-200)"
    failures=$((failures + 1))
  fi
  return "$status"
}

deck=$GPTBENCH_BUNDLE/input/124m_short.in
# A model that a sanitizer bears, with odd sizes: rows that are no multiple of a tile, a padded vocabulary.
small="model.num_layers=2 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=40 model.vocab_size=250
  model.vocab_multiple=8 batch.micro_batch_size=2 batch.global_batch_size=5 run.steps=3 run.warmup_steps=1"

# gpu RANKS NAME SECONDS KEYS...: a deck on the GPU.
gpu() {
  local ranks=$1 name=$2 limit=$3
  shift 3
  try "$name" "$limit" "$GPTBENCH_BUNDLE/launch" "$ranks" gptbench "$deck" run.device=cuda \
    "run.name=$name" "output.directory=$work/$name" "$@"
}

part_info() {
  {
    date -u
    nvidia-smi
    lscpu
    ldd "$GPTBENCH_BUNDLE/bin/gptbench"
    gptbench --version
  } >"$OUT/info.log" 2>&1
  say "device  $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | head -n 1)"
}

part_tests() {
  local program
  for program in test_gpu test_gpu_kernels; do
    try "$program" 240 "$program"
    grep -E '^\[  (PASSED|FAILED|SKIPPED)' "$OUT/$program.log" | tee -a "$summary"
  done
}

part_decks() {
  # shellcheck disable=SC2086  # a list of keys
  {
    gpu 1 small_fp32 60 $small
    gpu 1 small_bf16 60 $small precision.compute=bf16
    gpu 1 small_tf32 60 $small precision.tf32=T
    gpu 1 small_dropout 60 $small model.dropout=0.1
    gpu 1 small_recompute 60 $small memory.activation_checkpointing=full
    gpu 1 small_offload 60 $small precision.compute=bf16 parallel.offload=optimizer,parameters
  }
  gpu 1 short_bf16 120 precision.compute=bf16 batch.micro_batch_size=4
  # The same algorithms give the same bits.
  gpu 1 again 120 precision.compute=bf16 batch.micro_batch_size=4 "run.algorithms=$work/short_bf16/result.h5"
  if ! diff <(grep -E '^ *[0-9]+/' "$OUT/short_bf16.log" | awk '{print $2, $3}') \
    <(grep -E '^ *[0-9]+/' "$OUT/again.log" | awk '{print $2, $3}') >"$OUT/repeat.log"; then
    say "FAILED  repeat: losses of two runs differ"
    failures=$((failures + 1))
  fi
}

part_sanitize() {
  if ! command -v compute-sanitizer >/dev/null; then
    say "skipped sanitize: no compute-sanitizer"
    return
  fi
  local tool type
  for tool in memcheck racecheck; do
    for type in fp32 bf16; do
      # shellcheck disable=SC2086  # a list of keys
      try "${tool}_$type" 240 compute-sanitizer --tool "$tool" --error-exitcode 1 gptbench "$deck" $small \
        run.device=cuda "precision.compute=$type" "output.directory=$work/$tool$type"
    done
  done
}

# Decompositions on ranks that share the GPU, each verified against one reference rank within the run.
part_ranks() {
  # shellcheck disable=SC2086  # a list of keys
  {
    gpu 2 ranks_data 90 $small run.comm=mpi
    gpu 2 ranks_zero3 90 $small run.comm=mpi parallel.zero_stage=3
    gpu 2 ranks_tensor 90 $small run.comm=mpi parallel.tensor_parallel=2
    gpu 2 ranks_sequence 90 $small run.comm=mpi parallel.tensor_parallel=2 parallel.sequence_parallel=T
    gpu 2 ranks_pipeline 90 $small run.comm=mpi parallel.pipeline_parallel=2
    gpu 2 ranks_context 90 $small run.comm=mpi parallel.context_parallel=2
    gpu 4 ranks_all 120 $small run.comm=mpi parallel.tensor_parallel=2 parallel.pipeline_parallel=2 precision.compute=bf16
    gpu 4 ranks_zero2 120 $small run.comm=mpi parallel.zero_stage=2 precision.compute=bf16 batch.micro_batch_size=1
  }
}

part_bench() {
  local row preset sequence batch
  for row in gpt2-124m:1024:32 gpt-350m:1024:16 gpt-1.3b:2048:8; do
    IFS=: read -r preset sequence batch <<<"$row"
    gpu 1 "bench_$preset" 150 "model.preset=$preset" "model.seq_length=$sequence" "batch.micro_batch_size=$batch" \
      precision.compute=bf16 model.vocab_multiple=128 run.steps=12 run.warmup_steps=4 output.flops_convention=mpt ||
      continue
    grep '^GPTBENCH' "$OUT/bench_$preset.log" | tee -a "$summary"
    cp "$work/bench_$preset/result.h5" "$OUT/bench_$preset.h5"
  done
}

if [ $# -eq 0 ]; then set -- info tests decks sanitize ranks bench; fi
for part in "$@"; do
  case $part in
    info) part_info ;;
    tests) part_tests ;;
    decks) part_decks ;;
    sanitize) part_sanitize ;;
    ranks) part_ranks ;;
    bench) part_bench ;;
    *)
      echo "check.sh: no part '$part'; there are info tests decks sanitize ranks bench" >&2
      exit 2
      ;;
  esac
done
say "$failures failed"
echo
cat "$summary"
exit $((failures > 0))
