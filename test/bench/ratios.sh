#!/bin/sh
# ratios.sh BUILD [--quick] [--repeats N] [--steps N] [KEY=VALUE ...]
# Throughput of two ranks beside that of two independent runs of one rank at the same time: the share
# that each way of using two cores together keeps. GPT-2 124M, one sequence a micro-batch, one thread a
# rank:
#   dp=2  8 sequences a rank and step     tp=2  8 sequences a step     pp=2  16 micro-batches
# Runs are interleaved (single, dp=2, single, tp=2, single, pp=2, and again) and medians compared, so
# that a machine that drifts does so for all. A step is 7 TFLOP a rank: an hour or so on two cores.
# --quick takes a tiny model, which says nothing about ratios and shows that the driver works. KEY=VALUE
# are deck keys of all runs.
set -eu

usage() {
  echo "usage: ratios.sh BUILD [--quick] [--repeats N] [--steps N] [KEY=VALUE ...]" >&2
  exit 2
}

[ $# -ge 1 ] || usage
build=$1
shift
repeats=3
steps=3
model="model.preset=gpt2-124m model.seq_length=1024"
keys=
while [ $# -gt 0 ]; do
  case $1 in
    --quick)
      model="model.num_layers=2 model.hidden_size=32 model.num_attention_heads=4 model.seq_length=32 model.vocab_size=101"
      repeats=1
      ;;
    --repeats) shift; [ $# -gt 0 ] || usage; repeats=$1 ;;
    --steps) shift; [ $# -gt 0 ] || usage; steps=$1 ;;
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
  name=$2
  shift 2
  # shellcheck disable=SC2086  # words
  if ! "$build/launch" "$ranks" "$build/bin/gptbench" "$work/deck.in" $model run.device=host \
    run.steps=$((steps + 1)) run.warmup_steps=1 run.verify=.false. batch.micro_batch_size=1 \
    output.peak_tflops=1 "output.directory=$work/$name" $keys "$@" >"$work/$name.log" 2>&1; then
    cat "$work/$name.log" >&2
    return 1
  fi
  sed -n 's/^GPTBENCH .* tokens_per_s=\([^ ]*\) .*$/\1/p' "$work/$name.log" >"$work/$name.rate"
}

# Two runs of one rank at the same time; the sum of their rates.
singles() {
  train 1 first batch.global_batch_size=8 &
  first=$!
  train 1 second batch.global_batch_size=8
  wait "$first"
  cat "$work/first.rate" "$work/second.rate" | awk '{ sum += $1 } END { print sum }' >>"$work/singles"
}

pair() {
  name=$1
  shift
  train 2 "$name" "$@"
  cat "$work/$name.rate" >>"$work/$name"_all
}

repeat=0
while [ "$repeat" -lt "$repeats" ]; do
  repeat=$((repeat + 1))
  singles
  pair dp parallel.data_parallel=2 batch.global_batch_size=16
  singles
  pair tp parallel.tensor_parallel=2 batch.global_batch_size=8
  singles
  pair pp parallel.pipeline_parallel=2 batch.global_batch_size=16
done

# median FILE: median, least and largest
median() {
  sort -g "$1" | awk '{ x[NR] = $1 }
    END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2, x[1], x[NR] }'
}

median "$work/singles" >"$work/base"
read -r base least largest <"$work/base"
echo "Tokens/s, median (least to largest) of $repeats runs of $steps timed steps each"
printf '%-28s %10.2f (%.2f to %.2f)\n' "two independent ranks" "$base" "$least" "$largest"
for each in "dp 97" "tp 85" "pp 88"; do
  name=${each% *}
  median "$work/${name}_all" >"$work/median"
  read -r rate least largest <"$work/median"
  awk -v name="$name=2" -v rate="$rate" -v least="$least" -v largest="$largest" -v base="$base" \
    -v aim="${each#* }" 'BEGIN {
      printf "%-28s %10.2f (%.2f to %.2f)  %5.1f%% of it, aim %d%%\n", name, rate, least, largest, 100 * rate / base, aim }'
done
