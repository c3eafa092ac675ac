#!/bin/bash
# check.sh CALL | PART ...: what is to be seen on a machine with a GPU, from a bundle (make bundle) that was
# unpacked there. check.sh --list prints the calls (a to d), their parts and each part's seconds; a call ends
# within eight minutes, the most valuable first. Each part ends by the sum of the seconds up to it, whatever
# it left unfinished; what no time is left for is said to be skipped. $PERCENT (100) scales all seconds.
# $OUT (./gpu_check) receives, as results arrive: summary.txt, a few lines per command with clock, power and
# temperature of the GPU, printed at the end; and logs.tgz, all logs and results. Status 0 when nothing failed.
#
#   OUT=/tmp/seen bash test/gpu/check.sh a
# shellcheck disable=SC2317  # functions are called by their names in the table
set -u

parts_of_calls() {
  cat <<'END'
a info      40 device, programs; CUDA's libraries read from the disk once
a 124m      50 bf16, 8 micro-batches per step, as in all rows below; selected algorithms and their times
a kernels   50 bandwidth beside a copy, attention, one large GEMM
a tests     60 test_gpu
a 350m      45
a 1.3b      60
a 7b        90 micro-batch 2
a profile   70 one step of 124m by kernel (ncu)
b info      40
b attention 95 own kernels and cuDNN's on the models of a
b graph     30 steps issued, and replayed as a CUDA graph
b fp8       70 mpt-1b in bf16 and fp8
b torch     200 torch.compile on the models of a
b 7b_full   35 full recomputation, micro-batch 4
c info      40
c cases     80 test_gpu_kernels
c decks     130 small models in every precision and option
c ranks     110 decompositions of ranks that share the GPU
c sanitize  110 compute-sanitizer on our kernels
d info      40
d verified  100 124m in bf16 against the reference, as it is quoted
d calibrate 130 machine profiles of 124m and 1.3b, which projections of the runs of a can take
d nccl      20 NCCL is opened
d resume    80 checkpoints of 124m; a resumed run repeats the steps of an unbroken one
d burn_in   75 1.3b for a minute: drift, clock, power
END
}

if [ "${1---list}" = --list ]; then
  echo "call part seconds content"
  parts_of_calls
  exit 0
fi
# Names and seconds of the parts that the arguments name.
wanted=""
for word in "$@"; do
  found=$(parts_of_calls | awk -v word="$word" '$1 == word { print $2 ":" $3 } $2 == word && !seen++ { print $2 ":" $3 }')
  if [ -z "$found" ]; then
    echo "check.sh: no call or part '$word'; there are $(parts_of_calls | awk '!seen[$1]++ { print $1 } !seen[$2]++ { print $2 }' | paste -sd' ')" >&2
    exit 2
  fi
  wanted="$wanted $found"
done

bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
launch() { sh "$bundle/launch" "$@"; }
PATH=$PATH:/usr/local/cuda/bin:$(printf '%s:' /opt/nvidia/nsight-compute/*/)
PERCENT=${PERCENT:-100}
OUT=${OUT:-$PWD/gpu_check}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
summary=$OUT/summary.txt
: >"$summary"
work=$(mktemp -d)
logs=$work/logs
mkdir "$logs"
pack() { tar -czf "$work/logs.tgz" -C "$work" logs && mv "$work/logs.tgz" "$OUT/logs.tgz"; }
cd "$work" || exit 1
failures=0
skipped=0
deadline=0

say() { echo "$*" | tee -a "$summary"; }
skip() {
  say "skipped $*"
  skipped=$((skipped + 1))
}
# What is asked of other programs beforehand must not hang.
ask() { timeout -k 2 20 "$@"; }

# State of the GPU once a second: SM clock in MHz, power in W, temperature in C.
states=$work/states
: >"$states"
while sleep 1; do
  ask nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader,nounits >>"$states" 2>/dev/null || break
done &
watcher=$!
trap 'kill "$watcher" 2>/dev/null; pack; cd /; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
# state_since LINE: "; 1980 MHz, 690 W, 62 C", of the samples behind that line with at least 0.7 of their highest
# power: mean clock, highest power and temperature.
state_since() {
  tail -n "+$(($1 + 1))" "$states" | awk -F', *' '$2 + 0 > 0 { clock[++n] = $1; power[n] = $2; if ($2 > most) most = $2; if ($3 > hot) hot = $3 }
    END { for (i = 1; i <= n; ++i) if (power[i] >= 0.7 * most) { sum += clock[i]; ++used }
          if (used) printf "; %.0f MHz, %.0f W, %.0f C", sum / used, most, hot }'
}

# What a log says of its end: the program's own complaint, where there is one, or its last line; and
# which checks and tests failed, with what they saw.
last_word() { { grep -E '^gptbench: ' "$1" || grep -v '^ *$' "$1"; } | tail -n 1 | cut -c1-200; }
complaints() { grep -E ' FAILED$|: Failure$|^(Expected|Actual|Value of|  Which is)|bound [0-9]|Invalid|hazard' "$1" | head -n 8 | cut -c1-160 | sed 's/^/          /'; }

# try NAME SECONDS COMMAND...: runs it within a limit and within its part's time; its log is logs/NAME.log.
try() {
  local name=$1 limit=$(($2 * PERCENT / 100)) start=$SECONDS status=0 before
  shift 2
  local left=$((deadline - SECONDS))
  if [ "$left" -lt $((1 + 4 * PERCENT / 100)) ]; then
    skip "$name: no time left"
    return 1
  fi
  if [ "$left" -lt "$limit" ]; then limit=$left; fi
  before=$(wc -l <"$states")
  timeout -k 5 "$limit" "$@" >"$logs/$name.log" 2>&1 || status=$?
  local took
  took="$((SECONDS - start)) s$(state_since "$before")"
  if [ "$status" -eq 0 ]; then
    say "ok      $name ($took)"
  elif [ "$status" -eq 77 ]; then
    skip "$name: $(last_word "$logs/$name.log")"
  else
    say "FAILED  $name: status $status after $took; $(last_word "$logs/$name.log")"
    complaints "$logs/$name.log" | tee -a "$summary"
    failures=$((failures + 1))
  fi
  pack
  return "$status"
}

deck=$bundle/input/124m_short.in
# A model that a sanitizer bears, with odd sizes: rows that are no multiple of a tile, a padded vocabulary. It is
# checked, not rated: with a peak no ceiling is measured where the GPU has no data sheet.
small="model.num_layers=2 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=24 model.vocab_size=250
  model.vocab_multiple=8 batch.micro_batch_size=2 batch.global_batch_size=5 run.steps=3 run.warmup_steps=1
  run.attention=native output.peak_tflops=1"

# gpu RANKS NAME SECONDS KEYS...: a deck on the GPU; of a key that is given twice the last counts. Its
# result stays in $work/NAME. $tool: a command under which the program runs.
tool=
gpu() {
  local ranks=$1 name=$2 limit=$3 argument
  shift 3
  local -A value=()
  for argument in "$@"; do value[${argument%%=*}]=$argument; done
  # shellcheck disable=SC2086  # $tool is a command with its options
  try "$name" "$limit" sh "$bundle/launch" "$ranks" $tool gptbench "$deck" run.device=cuda \
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

# selected RESULT: attention and GEMM algorithms of a run with their times, GEMMs also in TFLOP/s.
selected() {
  launch 1 gptpost show --format json "$1" 2>/dev/null | sed 's/\\u000a/\n/g' | awk -F= '
    /^attention\./ { printf "          %s: %s\n", substr($1, 11), $2 }
    /^gemm\./ {
      n = split($1, part, "."); split($2, word, " "); flops = 2
      for (i = 1; i <= n; ++i) if (part[i] ~ /^[RKN][0-9]+$/) flops *= substr(part[i], 2)
      printf "          %s: %s us, %.0f TFLOP/s%s\n", substr($1, 6), word[4], flops / (word[4] * 1e6 + 1e-9), word[2] == 1 ? ", fused" : ""
    }' | tee -a "$summary"
}

# bench NAME MODEL KEYS...: a timed run of a row below, its line, and its result.
#        name  preset    layers hidden heads length micro-batch steps
models="124m  gpt2-124m 12 768  12 1024 32 12
        350m  gpt-350m  24 1024 16 1024 16 12
        1.3b  gpt-1.3b  24 2048 32 2048 8  8
        1b    mpt-1b    24 2048 16 2048 8  8
        7b    mpt-7b    32 4096 32 2048 2  6"
bench() {
  local name=$1 preset length batch steps
  read -r _ preset _ _ _ length batch steps <<<"$(awk -v model="$2" '$1 == model' <<<"$models")"
  shift 2
  gpu 1 "$name" 90 "model.preset=$preset" "model.seq_length=$length" "batch.micro_batch_size=$batch" \
    "batch.global_batch_size=$((8 * batch))" precision.compute=bf16 run.verify=F "run.steps=$steps" \
    run.warmup_steps=2 output.flops_convention=mpt "$@" || return
  grep '^GPTBENCH' "$logs/$name.log" | sed -e 's/ file=.*//' | tee -a "$summary"
  cp "$work/$name/result.h5" "$logs/$name.h5"
}
row() { bench "$@" && selected "$work/$1/result.h5"; }

pythons() { for python in python3 /opt/*/.venv/bin/python3 /opt/*/bin/python3; do command -v "$python" 2>/dev/null; done | sort -u; }

part_info() {
  {
    date -u
    ask nvidia-smi
    lscpu
    # shellcheck disable=SC2016  # expanded by the shell that is launched
    launch 1 sh -c 'ldd "$0/bin/gptbench"; echo "$LD_LIBRARY_PATH" | tr : "\n"' "$bundle"
  } >"$logs/info.log" 2>&1
  say "device  $(ask nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader 2>&1 | head -n 1)"
  say "program $(launch 1 gptbench --version 2>&1 | head -n 1), $(launch 1 gptbench --version 2>&1 | sed -n 's/^libraries .*; //p')"
  # 1.5 GB and more, which the first call of a library would wait for.
  # shellcheck disable=SC2016
  try libraries 35 sh "$bundle/launch" 1 sh -c 'IFS=:
    for folder in $LD_LIBRARY_PATH; do
      for library in "$folder"/libcublasLt.so.* "$folder"/libcudnn*.so.* "$folder"/libnvrtc*.so.*; do
        if [ -e "$library" ]; then ls -lL "$library"; cat "$library" >/dev/null & fi
      done
    done
    wait'
}

gtest() {
  try "$1" "$2" sh "$bundle/launch" 1 "$1"
  if [ -e "$logs/$1.log" ]; then grep -E '^\[  (PASSED|FAILED|SKIPPED)|^note: ' "$logs/$1.log" | sort | uniq -c | head -n 20 | tee -a "$summary"; fi
}
part_tests() { gtest test_gpu 60; }
part_cases() { gtest test_gpu_kernels 80; }

part_124m() { row 124m 124m; }
part_350m() { row 350m 350m; }
part_1.3b() { row 1.3b 1.3b; }
part_7b() { row 7b 7b; }
part_7b_full() { bench 7b_full 7b batch.micro_batch_size=4 batch.global_batch_size=8 memory.activation_checkpointing=full; }

part_kernels() {
  try kernels 45 sh "$bundle/launch" 1 bench_cuda_kernels --compute bf16
  grep -E '[0-9]\.[0-9]' "$logs/kernels.log" | tee -a "$summary"
}

# Time and bytes of each kernel of a step with one micro-batch.
part_profile() {
  if ! command -v ncu >/dev/null; then
    skip "profile: no ncu"
    return
  fi
  local known=
  if [ -e "$work/124m/result.h5" ]; then known=run.algorithms=$work/124m/result.h5; fi
  tool="ncu --clock-control none --cache-control none --csv --print-units base --log-file $logs/ncu.csv
    --metrics gpu__time_duration.sum,dram__bytes.sum"
  # shellcheck disable=SC2086  # no key, or one
  bench profile 124m batch.global_batch_size=32 run.steps=2 run.warmup_steps=1 run.cuda_graph=false $known
  tool=
  [ -e "$logs/ncu.csv" ] || return
  python3 "$bundle/test/gpu/step_kernels.py" "$logs/ncu.csv" 2>&1 | tee -a "$summary"
  gzip "$logs/ncu.csv"
}

part_attention() {
  local model kernels
  for model in 124m 1.3b 1b; do
    for kernels in native cudnn; do
      bench "${model}_$kernels" "$model" "run.attention=$kernels" run.steps=4
    done
  done
  # Our own kernels repeat bit for bit, given the same algorithms.
  bench 124m_again 124m run.attention=native run.steps=4 "run.algorithms=$work/124m_native/result.h5"
  same_steps repeats 124m_native 124m_again
}

part_graph() {
  bench graph_true 124m run.cuda_graph=true
  bench graph_false 124m run.cuda_graph=false
}

part_fp8() {
  row 1b 1b
  row 1b_fp8 1b precision.compute=fp8
}

part_torch() {
  local python torch="" model layers hidden heads length batch
  for python in $(pythons); do
    if timeout -k 2 $((PERCENT)) "$python" -c 'import torch' 2>/dev/null; then torch=$python && break; fi
  done
  if [ -z "$torch" ]; then
    skip "torch: no Python here has PyTorch"
    return
  fi
  # A first run of each, all at once, leaves the compiled kernels in PyTorch's cache: that takes a minute a model.
  local first="" timed
  for timed in no yes; do
    for model in 124m 350m 1.3b; do
      read -r _ _ layers hidden heads length batch _ <<<"$(awk -v model="$model" '$1 == model' <<<"$models")"
      set -- "$torch" "$bundle/test/bench/pytorch_step.py" --layers "$layers" --hidden "$hidden" --heads "$heads" \
        --vocab 50304 --length "$length" --batch "$batch" --accumulate 8 --compute bf16 --device cuda --compile
      if [ "$timed" = no ]; then
        timeout -k 5 $((110 * PERCENT / 100)) "$@" --steps 1 >"$logs/torch_compile_$model.log" 2>&1 &
        first="$first $!"
      else
        try "torch_$model" 45 "$@" --steps 5 || continue
        grep '^pytorch' "$logs/torch_$model.log" | tee -a "$summary"
      fi
    done
    # shellcheck disable=SC2086  # a list
    if [ "$timed" = no ]; then wait $first; fi
  done
}

part_decks() {
  # shellcheck disable=SC2086  # a list of keys
  {
    gpu 1 small_fp32 45 $small
    gpu 1 small_bf16 45 $small precision.compute=bf16 run.attention=auto
    gpu 1 small_fp16 45 $small precision.compute=fp16
    gpu 1 small_overflow 45 $small precision.compute=fp16 precision.initial_loss_scale=1e7 run.steps=8
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

# Decompositions on ranks that share the GPU, each verified against one reference rank within the run.
part_ranks() {
  local ranks
  for ranks in 1 2 4; do
    try "equivalence_$ranks" 45 sh "$bundle/launch" "$ranks" test_gpu_equivalence
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

# Our own kernels alone: NVIDIA's are instrumented slowly, and race by design. GEMMs take the algorithms of
# a run before, so that no search runs under the sanitizer. Under racecheck (2025.3) cuBLASLt's kernels of 16-bit
# types do not start.
part_sanitize() {
  if ! command -v compute-sanitizer >/dev/null; then
    skip "sanitize: no compute-sanitizer"
    return
  fi
  local check type known
  for type in bf16 fp32; do
    known=
    # shellcheck disable=SC2086  # a list of keys
    gpu 1 "unchecked_$type" 30 $small "precision.compute=$type" run.verify=F &&
      known=run.algorithms=$work/unchecked_$type/result.h5
    for check in memcheck $([ "$type" = fp32 ] && echo racecheck); do
      tool="compute-sanitizer --tool $check --kernel-name kns=gptbench --error-exitcode 1"
      # shellcheck disable=SC2086
      gpu 1 "${check}_$type" 60 $small "precision.compute=$type" run.verify=F $known
      tool=
    done
  done
}

# headline LOG: the box at the end of a run.
headline() { sed -nE '/^(VALID|INVALID|NOT VERIFIED)/,/^====/p' "$1" | grep -v '^===' | sed 's/^/          /' | tee -a "$summary"; }

part_verified() {
  gpu 1 verified 95 model.preset=gpt2-124m model.seq_length=1024 batch.micro_batch_size=32 \
    batch.global_batch_size=256 precision.compute=bf16 run.steps=20 run.warmup_steps=3 output.flops_convention=mpt
  headline "$logs/verified.log"
  cp "$work/verified/result.h5" "$logs/verified.h5" 2>/dev/null
}

part_calibrate() {
  local model preset length batch
  for model in 124m 1.3b; do
    read -r _ preset _ _ _ length batch _ <<<"$(awk -v model="$model" '$1 == model' <<<"$models")"
    try "calibrate_$model" 65 sh "$bundle/launch" 1 gptbench --calibrate "$deck" run.device=cuda \
      "run.name=$model" "output.directory=$work/calibrate_$model" run.time_limit_s=45 "model.preset=$preset" \
      "model.seq_length=$length" "batch.micro_batch_size=$batch" "batch.global_batch_size=$batch" precision.compute=bf16
    last_word "$logs/calibrate_$model.log" | tee -a "$summary"
    cp "$work/calibrate_$model"/*.in "$logs/" 2>/dev/null
    cp "$work/calibrate_$model/result.h5" "$logs/calibrate_$model.h5" 2>/dev/null
  done
}

# shellcheck disable=SC2086  # a list of keys
part_nccl() {
  gpu 1 nccl 20 $small run.comm=nccl
  grep -io 'nccl [0-9][^;,]*' "$logs/nccl.log" | head -n 1 | tee -a "$summary"
}

part_resume() {
  local keys="model.preset=gpt2-124m model.seq_length=1024 batch.micro_batch_size=16 batch.global_batch_size=32
    precision.compute=bf16 run.verify=F run.warmup_steps=1 run.attention=native run.deterministic=T model.dropout=0.1"
  # shellcheck disable=SC2086
  {
    gpu 1 unbroken 40 $keys run.steps=8
    keys="$keys run.algorithms=$work/unbroken/result.h5 checkpoint.directory=$work/checkpoints"
    gpu 1 saved 40 $keys run.steps=4 checkpoint.every_steps=2
    gpu 1 resumed 40 $keys run.steps=8 run.resume=auto
  }
  grep -i checkpoint "$logs/saved.log" "$logs/resumed.log" | sed 's/.*log:/          /' | head -n 8 | tee -a "$summary"
  for log in unbroken resumed; do grep -E '^ *[5-8]/8 ' "$logs/$log.log" >"$logs/last_$log.log"; done
  same_steps resumed_is_unbroken last_unbroken last_resumed
}

part_burn_in() {
  bench burn_in 1.3b run.duration_s=45 && headline "$logs/burn_in.log"
}

for part in $wanted; do
  deadline=$((deadline + ${part#*:} * PERCENT / 100))
  "part_${part%:*}"
  pack
done
say "$failures failed, $skipped skipped, $SECONDS s"
echo
cat "$summary"
exit $((failures > 0))
