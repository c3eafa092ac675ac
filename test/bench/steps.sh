#!/bin/sh
# steps.sh BUILD [--quick] [--repeats N] [--steps N] [--ranks N] [--only NAME,...] [--doc FILE]
# The training step of GPT-2 124M in several configurations, each beside the rate that the GEMM
# library reaches on the model's own products (bench_ceiling, all ranks at the same time), and
# beside each PyTorch that PYTHON, python3 and /usr/bin/python3 have, on the same model (PYTHON=none:
# without). Ceiling and step are run in turn (A B A B ...), the medians compared.
#   --ranks N     one rank a core: N (default: cores)
#   --only NAMES  of the configurations listed below, as in --only t1024-mb4-fp32,pytorch
#   --quick       a tiny model: shows that the driver works, its figures mean nothing
#   --doc FILE    also replaces what stands between "<!-- steps begin -->" and "<!-- steps end -->"
#                 in FILE
set -eu

usage() {
  echo "usage: steps.sh BUILD [--quick] [--repeats N] [--steps N] [--ranks N] [--only NAME,...] [--doc FILE]" >&2
  exit 2
}

# name          compute  T     micro-batch  sequences per rank, step
configurations="
t1024-mb4-fp32  fp32     1024  4            8
t1024-mb4-bf16  bf16     1024  4            8
t1024-mb1-fp32  fp32     1024  1            8
t1024-mb1-bf16  bf16     1024  1            8
t4096-mb1-fp32  fp32     4096  1            2
t4096-mb1-bf16  bf16     4096  1            2
t8192-mb1-fp32  fp32     8192  1            1
t8192-mb1-bf16  bf16     8192  1            1
"

[ $# -ge 1 ] || usage
build=$1
shift
repeats=2
steps=2
ranks=$(nproc)
only=
doc=
quick=
model="model.preset=gpt2-124m"
ceiling_s=10
while [ $# -gt 0 ]; do
  case $1 in
    --quick)
      quick=yes
      model="model.num_layers=1 model.hidden_size=32 model.num_attention_heads=2 model.vocab_size=101"
      repeats=1
      steps=1
      ceiling_s=0
      ;;
    --repeats | --steps | --ranks | --only | --doc)
      option=${1#--}
      shift
      [ $# -gt 0 ] || usage
      eval "$option=\$1"
      ;;
    *) usage ;;
  esac
  shift
done
case $repeats$steps$ranks in *[!0-9]*) usage ;; esac
OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export OMP_NUM_THREADS

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
printf '&run name = "steps" /\n' >"$work/deck.in"

wanted() {
  case ",$only," in ,, | *",$1,"*) return 0 ;; esac
  return 1
}

# field NAME FILE: the value of NAME=... in the last line that has it.
field() {
  sed -n "s/^.*[ ]$1=\([^ ]*\).*\$/\1/p" "$2" | tail -n 1
}

# median FILE: median, least and largest
median() {
  sort -g "$1" | awk '{ x[NR] = $1 }
    END { print (NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2), x[1], x[NR] }'
}

# train NAME KEY=VALUE ...: the log of a run into $work/NAME.log; reads no standard input
train() {
  run=$1
  shift
  # shellcheck disable=SC2086  # words
  "$build/launch" "$ranks" "$build/bin/gptbench" "$work/deck.in" $model --verbose run.device=host \
    "run.steps=$((steps + 1))" run.warmup_steps=1 run.verify=.false. output.peak_tflops=1 \
    output.flops_convention=mpt "output.directory=$work/$run" "$@" </dev/null >"$work/$run.log" 2>&1 || {
    cat "$work/$run.log" >&2
    return 1
  }
}

ceiling() {
  "$build/launch" "$ranks" "$build/test/bench/bench_ceiling" --compute "$1" --rows "$2" --seconds "$ceiling_s" \
    </dev/null >"$work/ceiling.log"
  field gflops_per_rank "$work/ceiling.log"
}

# High-water mark of all ranks together, MiB: that of the largest, times ranks.
peak_mib() {
  sed -n 's/^ *peak  *\([0-9.]*\) MiB.*$/\1/p' "$1" | tail -n 1 | awk -v n="$ranks" '{ print n * $1 }'
}

say() {
  echo "$*" >&2
}

measure_steps() {
  echo "$configurations" | while read -r name compute length micro sequences; do
    [ -n "$name" ] || continue
    wanted "$name" || continue
    rows=$((micro * length < 4096 ? micro * length : 4096))
    if [ -n "$quick" ]; then
      length=$((length / 64))
      rows=16
    fi
    repeat=0
    while [ "$repeat" -lt "$repeats" ]; do
      repeat=$((repeat + 1))
      say "$name, $repeat of $repeats"
      before=$(ceiling "$compute" "$rows")
      train "$name" "precision.compute=$compute" "model.seq_length=$length" \
        "batch.micro_batch_size=$micro" "batch.global_batch_size=$((sequences * ranks))"
      after=$(ceiling "$compute" "$rows")
      tflops=$(field tflops "$work/$name.log")
      field tokens_per_s "$work/$name.log" >>"$work/$name.rate"
      echo "$tflops" | awk '{ print 1000 * $1 }' >>"$work/$name.gflops"
      echo "$before $after" | awk '{ print ($1 + $2) / 2 }' >>"$work/$name.ceiling"
      echo "$tflops $before $after" | awk '{ print 100 * 1000 * $1 / (($2 + $3) / 2) }' >>"$work/$name.share"
    done
    rate=$(median "$work/$name.rate")
    median "$work/$name.share" >"$work/median"
    read -r share least largest <"$work/median"
    gflops=$(median "$work/$name.gflops")
    top=$(median "$work/$name.ceiling")
    printf '| %s | %.1f | %.1f | %.1f | %.1f (%.1f to %.1f) |\n' "$name" "${rate%% *}" "${gflops%% *}" \
      "${top%% *}" "$share" "$least" "$largest"
  done
}

# Pythons with torch, one for each version of it, a line each.
find_torches() {
  [ "${PYTHON:-}" != none ] || return 0
  for python in ${PYTHON:-} python3 /usr/bin/python3; do
    version=$("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null) || continue
    echo "$version $python"
  done | awk '!seen[$1]++ { print $2 }'
}

# PyTorch with as many threads as ranks and a global batch of 4, gptbench with one sequence a
# micro-batch, in turn. Two ranks share a model's weights, so that there is one copy of them as in
# PyTorch, and pairs the optimizer's state.
measure_pytorch() {
  python=$1
  small=
  [ -z "$quick" ] || small="--layers 1 --hidden 32 --heads 2 --vocab 101 --length 16"
  length=1024
  [ -z "$quick" ] || length=16
  split="parallel.zero_stage=1"
  [ $((ranks % 2)) != 0 ] || split="$split parallel.tensor_parallel=2 parallel.sequence_parallel=.true."
  modes=eager
  if "$python" -c 'import torch; torch.compile(torch.sin)(torch.ones(1))' >/dev/null 2>&1; then modes='eager compiled'; fi
  for compute in fp32 bf16; do
    wanted "pytorch-$compute" || wanted pytorch || continue
    for mode in $modes; do compare_with_pytorch; done
  done
}

# One row: $compute, $mode (eager, or compiled by torch.compile) in $python.
compare_with_pytorch() {
  rm -f "$work/ours-$compute.rate" "$work/torch-$compute.rate" "$work/torch-$compute.ratio"
  option=
  [ "$mode" = eager ] || option=--compile
  repeat=0
  while [ "$repeat" -lt "$repeats" ]; do
    repeat=$((repeat + 1))
    say "pytorch $compute $mode, $repeat of $repeats"
    # shellcheck disable=SC2086  # words
    train "ours-$compute" "precision.compute=$compute" "model.seq_length=$length" \
      batch.micro_batch_size=1 batch.global_batch_size=4 $split
    # shellcheck disable=SC2086  # words
    OMP_NUM_THREADS=$ranks "$python" "$(dirname "$0")/pytorch_step.py" --compute "$compute" --threads "$ranks" --batch 4 \
      --steps "$steps" $option $small >"$work/torch.log"
    ours=$(field tokens_per_s "$work/ours-$compute.log")
    theirs=$(field tokens_per_s "$work/torch.log")
    echo "$ours" >>"$work/ours-$compute.rate"
    echo "$theirs" >>"$work/torch-$compute.rate"
    echo "$ours $theirs" | awk '{ print $1 / $2 }' >>"$work/torch-$compute.ratio"
  done
  ours=$(median "$work/ours-$compute.rate")
  theirs=$(median "$work/torch-$compute.rate")
  median "$work/torch-$compute.ratio" >"$work/median"
  read -r ratio least largest <"$work/median"
  mine=$(peak_mib "$work/ours-$compute.log")
  other=$(field peak_mib "$work/torch.log")
  printf '| %s, PyTorch %s, %s | %.1f | %.1f | %.2f (%.2f to %.2f) | %.0f | %.0f | %.2f |\n' "$compute" \
    "$(field version "$work/torch.log")" "$mode" "${ours%% *}" "${theirs%% *}" "$ratio" "$least" "$largest" \
    "$mine" "$other" "$(echo "$mine $other" | awk '{ print $1 / $2 }')"
}

{
  date -u +'%Y-%m-%d, %H:%M UTC. '
  sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1
  "$build/bin/gptbench" --version | head -n 1
  echo "$ranks ranks, $OMP_NUM_THREADS threads per rank; $repeats runs of $steps timed steps each"
} >"$work/machine"
{
  echo '```text'
  cat "$work/machine"
  echo '```'
  echo
  echo '| run | tokens/s | GFLOP/s per rank (mpt) | GEMM rate per rank | share %, median (range) |'
  echo '|---|---:|---:|---:|---:|'
  measure_steps
} >"$work/report.md"
torches=
if wanted pytorch || wanted pytorch-fp32 || wanted pytorch-bf16; then torches=$(find_torches); fi
if [ -n "$torches" ]; then
  {
    echo
    echo '| T = 1024, global batch 4 | gptbench tokens/s | PyTorch tokens/s | ratio (range) | gptbench peak MiB, all ranks | PyTorch peak MiB | ratio |'
    echo '|---|---:|---:|---:|---:|---:|---:|'
    for torch in $torches; do measure_pytorch "$torch"; done
  } >>"$work/report.md"
else
  say "steps.sh: no Python with torch, or not asked for: not compared with PyTorch"
fi
cat "$work/report.md"

if [ -n "$doc" ]; then
  awk -v report="$work/report.md" '
    /<!-- steps begin -->/ { print; print ""; while ((getline line < report) > 0) print line; print ""; skip = 1; found = 1 }
    /<!-- steps end -->/ { skip = 0 }
    !skip && !/<!-- steps begin -->/ { print }
    END { if (!found) exit 1 }' "$doc" >"$work/doc.md" || {
    say "steps.sh: $doc has no line <!-- steps begin -->; not changed"
    exit 1
  }
  cat "$work/doc.md" >"$doc"
fi
