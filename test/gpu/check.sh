#!/bin/bash
# check.sh [PART ...]: everything that is to be seen on a machine with a GPU, from a bundle (make bundle)
# that was copied there. Parts: info tests decks attention bench torch ranks large kernels sanitize; all without
# arguments, in that order, what tells most first. All of it ends within BUDGET seconds (default 570): each
# command has a limit, none keeps the next from running, and what no time is left for is said to be
# skipped: name the parts that are left in a second call. $OUT (default: ./gpu_check) receives two files:
# summary.txt, a few lines of each command, printed at the end; and logs.tgz, all logs and results,
# packed again after every part, so that nothing is lost where the script itself is stopped. Status 0 when
# nothing failed.
#
#   OUT=/tmp/seen test/gpu/check.sh tests decks
set -u

GPTBENCH_BUNDLE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export GPTBENCH_BUNDLE
# shellcheck source=/dev/null  # made by cmake/bundle.sh
. "$GPTBENCH_BUNDLE/environment"

# Libraries of CUDA: an installation, or those that Python packages bring along.
pythons() { for python in python3 /opt/*/.venv/bin/python3 /opt/*/bin/python3; do command -v "$python" 2>/dev/null; done | sort -u; }
# What is asked of other programs beforehand must not hang.
ask() { timeout -k 2 20 "$@"; }
cuda_library_folders() {
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib; do
    if [ -e "$folder" ]; then echo "$folder"; fi
  done
  for python in $(pythons); do
    site=$(ask "$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null) || continue
    ls -d "$site"/nvidia/*/lib 2>/dev/null
  done
}
system_libraries=$LD_LIBRARY_PATH
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(cuda_library_folders | sort -u | paste -sd:)
PATH=$PATH:/usr/local/cuda/bin
export LD_LIBRARY_PATH PATH

BUDGET=${BUDGET:-570}
OUT=${OUT:-$PWD/gpu_check}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
summary=$OUT/summary.txt
: >"$summary"
work=$(mktemp -d)
logs=$work/logs
mkdir "$logs"
pack() { tar -czf "$work/logs.tgz" -C "$work" logs && mv "$work/logs.tgz" "$OUT/logs.tgz"; }
trap 'pack; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work" || exit 1
failures=0
skipped=0

say() { echo "$*" | tee -a "$summary"; }

# What a log says of its end: the program's own complaint, where there is one, or its last line; and
# which checks and tests failed, with what they saw.
last_word() { { grep -E '^gptbench: ' "$1" || grep -v '^ *$' "$1"; } | tail -n 1 | cut -c1-200; }
complaints() { grep -E ' FAILED$|: Failure$|^(Expected|Actual|Value of|  Which is)|bound [0-9]|Invalid|hazard' "$1" | head -n 8 | cut -c1-160 | sed 's/^/          /'; }

# try NAME SECONDS COMMAND...: runs it within a limit and within the budget; its log is logs/NAME.log.
try() {
  local name=$1 limit=$2 start=$SECONDS status=0
  shift 2
  local left=$((BUDGET - SECONDS - 5))
  if [ "$left" -lt 10 ]; then
    say "skipped $name: no time left of BUDGET=$BUDGET s"
    skipped=$((skipped + 1))
    return 1
  fi
  if [ "$left" -lt "$limit" ]; then limit=$left; fi
  timeout -k 5 "$limit" "$@" >"$logs/$name.log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then
    say "ok      $name ($((SECONDS - start)) s)"
  elif [ "$status" -eq 77 ]; then
    say "skipped $name: $(last_word "$logs/$name.log")"
    skipped=$((skipped + 1))
  else
    say "FAILED  $name: status $status after $((SECONDS - start)) s; $(last_word "$logs/$name.log")"
    complaints "$logs/$name.log" | tee -a "$summary"
    failures=$((failures + 1))
  fi
  return "$status"
}

deck=$GPTBENCH_BUNDLE/input/124m_short.in
# A model that a sanitizer bears, with odd sizes: rows that are no multiple of a tile, a padded vocabulary.
small="model.num_layers=2 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=40 model.vocab_size=250
  model.vocab_multiple=8 batch.micro_batch_size=2 batch.global_batch_size=5 run.steps=3 run.warmup_steps=1"

# gpu RANKS NAME SECONDS KEYS...: a deck on the GPU; of a key that is given twice the last counts. Its
# result stays in $work/NAME.
gpu() {
  local ranks=$1 name=$2 limit=$3 argument
  shift 3
  local -A value=()
  for argument in "$@"; do value[${argument%%=*}]=$argument; done
  try "$name" "$limit" "$GPTBENCH_BUNDLE/launch" "$ranks" gptbench "$deck" run.device=cuda \
    "run.name=$name" "output.directory=$work/$name" output.log_every=1 "${value[@]}"
}

# Two runs of the same algorithms, whose losses and gradient norms have the same digits.
same_steps() {
  local what=$1 one=$logs/$2.log other=$logs/$3.log
  steps_of() { grep -E '^ *[0-9]+/' "$1" | awk '{print $2, $3}'; }
  if [ ! -e "$one" ] || [ ! -e "$other" ]; then return; fi
  if [ -z "$(steps_of "$one")" ] || [ -z "$(steps_of "$other")" ]; then return; fi  # said above
  if diff <(steps_of "$one") <(steps_of "$other") >"$logs/$what.log"; then
    say "ok      $what"
  else
    say "FAILED  $what: losses of $2 and $3 differ"
    failures=$((failures + 1))
  fi
}

part_info() {
  {
    date -u
    ask nvidia-smi
    lscpu
    ldd "$GPTBENCH_BUNDLE/bin/gptbench"
    ask gptbench --version
  } >"$logs/info.log" 2>&1
  say "device  $(ask nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader 2>&1 | head -n 1)"
  say "program $(ask gptbench --version 2>&1 | head -n 1), $(ask gptbench --version 2>&1 | sed -n 's/^libraries .*; //p')"
}

part_tests() {
  local program
  for program in test_gpu test_gpu_kernels; do
    try "$program" 120 "$program"
    grep -E '^\[  (PASSED|FAILED|SKIPPED)' "$logs/$program.log" | head -n 12 | tee -a "$summary"
  done
}

part_decks() {
  # shellcheck disable=SC2086  # a list of keys
  {
    gpu 1 small_fp32 45 $small
    gpu 1 small_bf16 45 $small precision.compute=bf16
    gpu 1 small_fp16 45 $small precision.compute=fp16
    gpu 1 small_overflow 45 $small precision.compute=fp16 precision.initial_loss_scale=1e12 run.steps=40
    gpu 1 small_issued 45 $small run.cuda_graph=false model.dropout=0.1 &&
      gpu 1 small_graph 45 $small run.cuda_graph=true model.dropout=0.1 \
        "run.algorithms=$work/small_issued/result.h5"
    gpu 1 small_tf32 45 $small precision.tf32=T
    gpu 1 small_fp8 45 $small precision.compute=fp8
    gpu 1 small_llama 45 $small model.family=llama precision.compute=bf16
    gpu 1 small_bert 45 $small model.family=bert precision.compute=bf16
    gpu 1 small_padded 45 $small model.family=bert precision.compute=bf16 data.short_seq_prob=0.5 run.attention=cudnn
    gpu 1 small_alibi 45 $small model.family=mpt model.position_embedding=alibi precision.compute=bf16 run.attention=cudnn
    gpu 1 small_recompute 45 $small memory.activation_checkpointing=full
    gpu 1 small_offload 45 $small precision.compute=bf16 parallel.offload=optimizer,parameters
    gpu 1 small_host_update 45 $small precision.compute=fp16 precision.reduce=fp16 parallel.offload=optimizer \
      parallel.offload_update=host
    gpu 1 small_file 45 $small precision.compute=bf16 parallel.offload=optimizer,parameters,activations \
      parallel.offload_target=file memory.activation_checkpointing=full
  }
  same_steps graph_is_issued_step small_issued small_graph
}

# cuDNN's beside our own, which repeats bit for bit, given the same algorithms.
part_attention() {
  local keys="precision.compute=bf16 batch.micro_batch_size=4"
  # shellcheck disable=SC2086  # a list of keys
  {
    gpu 1 short_cudnn 60 $keys run.attention=cudnn
    gpu 1 short_native 60 $keys run.attention=native &&
      gpu 1 again 60 $keys run.attention=native "run.algorithms=$work/short_native/result.h5"
  }
  same_steps repeats short_native again
}

# bench NAME PRESET SEQUENCE MICRO_BATCH KEYS...: a timed run; its line, regions of a step and result.
bench() {
  local name=bench_$1 preset=$2 sequence=$3 batch=$4
  shift 4
  gpu 1 "$name" 100 "model.preset=$preset" "model.seq_length=$sequence" "batch.micro_batch_size=$batch" \
    "batch.global_batch_size=$batch" model.vocab_multiple=128 run.steps=12 run.warmup_steps=4 \
    output.flops_convention=mpt "$@" || return
  grep '^GPTBENCH' "$logs/$name.log" | sed -e 's/ file=.*//' | tee -a "$summary"
  cp "$work/$name/result.h5" "$logs/$name.h5"
}

# The models of the published tables, and PyTorch on the same.
rows="gpt2-124m:12:768:12:1024:32 gpt-350m:24:1024:16:1024:16 gpt-1.3b:24:2048:32:2048:8"

part_bench() {
  local row preset sequence batch
  for row in $rows; do
    IFS=: read -r preset _ _ _ sequence batch <<<"$row"
    bench "$preset" "$preset" "$sequence" "$batch" precision.compute=bf16
  done
  bench fp8 gpt-1.3b 2048 8 precision.compute=fp8
}

# As large as one GPU holds, with and without recomputation.
part_large() {
  bench 7b mpt-7b 2048 1 precision.compute=bf16
  bench 7b_full mpt-7b 2048 4 precision.compute=bf16 memory.activation_checkpointing=full
}

part_torch() {
  local row preset layers hidden heads sequence batch torch=""
  for python in $(pythons); do
    if LD_LIBRARY_PATH=$system_libraries timeout -k 2 60 "$python" -c 'import torch' 2>/dev/null; then torch=$python; fi
  done
  if [ -z "$torch" ]; then
    say "skipped torch: no Python here has PyTorch"
    return
  fi
  for row in $rows; do
    IFS=: read -r preset layers hidden heads sequence batch <<<"$row"
    try "torch_$preset" 120 env "LD_LIBRARY_PATH=$system_libraries" "$torch" \
      "$GPTBENCH_BUNDLE/test/bench/pytorch_step.py" --layers "$layers" --hidden "$hidden" --heads "$heads" \
      --vocab 50304 --length "$sequence" --batch "$batch" --compute bf16 --steps 8 --device cuda --compile || continue
    grep '^pytorch' "$logs/torch_$preset.log" | tee -a "$summary"
  done
}

# Decompositions on ranks that share the GPU, each verified against one reference rank within the run.
part_ranks() {
  local ranks
  for ranks in 1 2 4; do
    try "equivalence_$ranks" 60 "$GPTBENCH_BUNDLE/launch" "$ranks" test_gpu_equivalence
  done
  # shellcheck disable=SC2086  # a list of keys
  {
    gpu 2 ranks_data 45 $small run.comm=mpi
    gpu 2 ranks_zero3 45 $small run.comm=mpi parallel.zero_stage=3
    gpu 2 ranks_tensor 45 $small run.comm=mpi parallel.tensor_parallel=2
    gpu 2 ranks_sequence 45 $small run.comm=mpi parallel.tensor_parallel=2 parallel.sequence_parallel=T
    gpu 2 ranks_pipeline 45 $small run.comm=mpi parallel.pipeline_parallel=2
    gpu 2 ranks_context 45 $small run.comm=mpi parallel.context_parallel=2
    gpu 4 ranks_all 60 $small run.comm=mpi parallel.tensor_parallel=2 parallel.pipeline_parallel=2 precision.compute=bf16
    gpu 4 ranks_zero2 60 $small run.comm=mpi parallel.zero_stage=2 precision.compute=bf16 batch.micro_batch_size=1
    gpu 4 ranks_bubble 60 $small run.comm=mpi parallel.pipeline_parallel=2 parallel.pipeline_schedule=zero_bubble
  }
}

part_kernels() {
  local type
  for type in bf16 fp32; do
    try "kernels_$type" 60 bench_cuda_kernels --compute "$type"
  done
}

# Products take the algorithms of the run before, so that no search is run under the sanitizer.
part_sanitize() {
  if ! command -v compute-sanitizer >/dev/null; then
    say "skipped sanitize: no compute-sanitizer"
    return
  fi
  local tool type known
  for type in bf16 fp32; do
    for tool in memcheck racecheck; do
      known=
      if [ -e "$work/small_$type/result.h5" ]; then known=run.algorithms=$work/small_$type/result.h5; fi
      # shellcheck disable=SC2086  # a list of keys
      try "${tool}_$type" 120 compute-sanitizer --tool "$tool" --error-exitcode 1 gptbench "$deck" $small \
        run.device=cuda "precision.compute=$type" run.verify=F "output.directory=$work/$tool$type" $known
    done
  done
}

if [ $# -eq 0 ]; then set -- info tests decks attention bench torch ranks large kernels sanitize; fi
for part in "$@"; do
  case $part in
    info) part_info ;;
    tests) part_tests ;;
    decks) part_decks ;;
    attention) part_attention ;;
    bench) part_bench ;;
    torch) part_torch ;;
    ranks) part_ranks ;;
    large) part_large ;;
    kernels) part_kernels ;;
    sanitize) part_sanitize ;;
    *)
      echo "check.sh: no part '$part'; there are info tests decks attention bench torch ranks large kernels sanitize" >&2
      exit 2
      ;;
  esac
  pack
done
say "$failures failed, $skipped skipped, $SECONDS s"
echo
cat "$summary"
exit $((failures > 0))
