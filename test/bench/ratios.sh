#!/bin/sh
# ratios.sh BUILD [--quick] [--repeats N] [--steps N] [--only dp,tp,pp] [KEY=VALUE ...]
# Throughput of two ranks beside that of two independent runs of one rank at the same time: the share
# that each way of using two cores together keeps. GPT-2 124M, one sequence a micro-batch, one thread a
# rank:
#   dp=2  8 sequences per rank and step   tp=2  2 sequences per step     pp=2  16 micro-batches
# Each run of two ranks stands between two of independent ranks (S dp S dp S, S tp S ...), and is
# compared with their mean, so that a machine that drifts does so for both; medians of these ratios
# are given. A step is up to 7 TFLOP a rank: an hour or so on two cores.
# --quick takes a tiny model, which says nothing about ratios and shows that the driver works. KEY=VALUE
# are deck keys of all runs.
set -eu

usage() {
  echo "usage: ratios.sh BUILD [--quick] [--repeats N] [--steps N] [--only dp,tp,pp] [KEY=VALUE ...]" >&2
  exit 2
}

[ $# -ge 1 ] || usage
build=$1
shift
repeats=3
steps=3
model="model.preset=gpt2-124m model.seq_length=1024"
keys=
only=dp,tp,pp
while [ $# -gt 0 ]; do
  case $1 in
    --quick)
      model="model.num_layers=2 model.hidden_size=32 model.num_attention_heads=4 model.seq_length=32 model.vocab_size=101"
      repeats=1
      ;;
    --repeats) shift; [ $# -gt 0 ] || usage; repeats=$1 ;;
    --steps) shift; [ $# -gt 0 ] || usage; steps=$1 ;;
    --only) shift; [ $# -gt 0 ] || usage; only=$1 ;;
    *=*) keys="$keys $1" ;;
    *) usage ;;
  esac
  shift
done
case $repeats$steps in *[!0-9]*) usage ;; esac
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
printf '&run name = "ratios" /\n' >"$work/deck.in"

# train RANKS NAME KEY=VALUE ...: tokens a second into $work/NAME.rate
train() {
  ranks=$1
  run=$2
  shift 2
  # shellcheck disable=SC2086  # words
  if ! "$build/launch" "$ranks" "$build/bin/gptbench" "$work/deck.in" $model run.device=host \
    run.steps=$((steps + 1)) run.warmup_steps=1 run.verify=.false. batch.micro_batch_size=1 \
    output.peak_tflops=1 "output.directory=$work/$run" $keys "$@" >"$work/$run.log" 2>&1; then
    cat "$work/$run.log" >&2
    return 1
  fi
  sed -n 's/^GPTBENCH .* tokens_per_s=\([^ ]*\) .*$/\1/p' "$work/$run.log" >"$work/$run.rate"
}

# singles SEQUENCES: two runs of one rank at the same time, so many sequences per step; the sum of their
# rates into $work/single.
singles() {
  # Open MPI 4 fails where two launchers create its folder at once: the first has another.
  (mkdir -p "$work/open-mpi" && export OMPI_MCA_orte_tmpdir_base="$work/open-mpi" &&
    train 1 first "batch.global_batch_size=$1") &
  first=$!
  train 1 second "batch.global_batch_size=$1"
  wait "$first"
  cat "$work/first.rate" "$work/second.rate" | awk '{ sum += $1 } END { print sum }' >"$work/single"
}

# median FILE: median, least and largest
median() {
  sort -g "$1" | awk '{ x[NR] = $1 }
    END { print (NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2), x[1], x[NR] }'
}

# compare NAME AIM SEQUENCES KEY=VALUE ...: the run of two ranks with these keys, beside single ones of
# so many sequences per step each.
compare() {
  name=$1
  aim=$2
  sequences=$3
  shift 3
  case ",$only," in *",$name,"*) ;; *) return 0 ;; esac
  singles "$sequences"
  repeat=0
  while [ "$repeat" -lt "$repeats" ]; do
    repeat=$((repeat + 1))
    before=$(cat "$work/single")
    train 2 pair "$@"
    singles "$sequences"
    echo "$before $(cat "$work/single")" | awk '{ print ($1 + $2) / 2 }' >>"$work/$name.single"
    cat "$work/pair.rate" >>"$work/$name.rate"
    echo "$(cat "$work/pair.rate") $before $(cat "$work/single")" |
      awk '{ print 100 * $1 / (($2 + $3) / 2) }' >>"$work/$name.share"
  done
  base=$(median "$work/$name.single")
  rate=$(median "$work/$name.rate")
  median "$work/$name.share" >"$work/median"
  read -r share least largest <"$work/median"
  printf '%s=2 %12.2f %16.2f   %5.1f%% of it (%.1f to %.1f), aim %d%%\n' "$name" "${rate%% *}" \
    "${base%% *}" "$share" "$least" "$largest" "$aim"
}

echo "Tokens/s, medians of $repeats runs of $steps timed steps each"
echo "       two ranks  two independent"
compare dp 97 8 parallel.data_parallel=2 batch.global_batch_size=16
compare tp 85 2 parallel.tensor_parallel=2 batch.global_batch_size=2
compare pp 88 8 parallel.pipeline_parallel=2 batch.global_batch_size=16
