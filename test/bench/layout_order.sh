#!/bin/sh
# layout_order.sh BUILD [--profile PATH] [--seconds S] [--count N] [--passes P] [--quick] [KEY=VALUE ...]
# How well `gptbench --search` orders layouts on this machine. Calibrates 2 ranks without a deck for S
# seconds (default 300), or takes the profile PATH. For each of three models the search writes a deck of
# every layout of two ranks; N of them (default 32), evenly spaced over the projected order, are run P times
# (default 1), every other time in the reverse order, so that a machine that grows slower or faster
# meanwhile favours none; measured is their mean. Printed for each model and for all: Kendall's tau of
# projected and measured time; the regret of the layout with the shortest projected time (its measured time
# over the shortest measured one, less 1); and median and 90th percentile of the regret among 1,000 random
# halves of the layouts. The machine must be idle; some 35 minutes on two cores, with each further pass 25
# more. --quick makes the models tiny, to see that the script works. KEY=VALUE are deck keys of all runs.
set -eu

usage() {
  echo "usage: layout_order.sh BUILD [--profile PATH] [--seconds S] [--count N] [--passes P] [--quick] [KEY=VALUE ...]" >&2
  exit 2
}
[ $# -ge 1 ] || usage
build=$1
shift
profile=
seconds=300
count=32
passes=1
quick=no
keys=
while [ $# -gt 0 ]; do
  case $1 in
    --profile) shift; [ $# -gt 0 ] || usage; profile=$1 ;;
    --seconds) shift; [ $# -gt 0 ] || usage; seconds=$1 ;;
    --count) shift; [ $# -gt 0 ] || usage; count=$1 ;;
    --passes) shift; [ $# -gt 0 ] || usage; passes=$1 ;;
    --quick) quick=yes ;;
    *=*) keys="$keys $1" ;;
    *) usage ;;
  esac
  shift
done
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
launch=${GPTBENCH_LAUNCH:-mpiexec -n}

last() { sed -n 's/^GPTBENCH .* '"$2"'=\([^ ]*\).*/\1/p' "$1" | tail -n 1; }

if [ -z "$profile" ]; then
  $launch 2 "$build/bin/gptbench" --calibrate run.device=host run.time_limit_s="$seconds" \
    output.directory="$work/calibrated" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  tail -n 1 "$work/log"
  profile=$work/calibrated/calibration.in
fi

# order NAME FILE: the figures of lines "projected measured", in the order of projection.
order() {
  awk -v name="$1" '
    function regret(used, i, best, chosen) {  # the first layout in use is the one with the shortest projection
      best = 0; chosen = 0
      for (i = 1; i <= NR; ++i) if (used[i]) {
        if (!chosen) chosen = measured[i]
        if (!best || measured[i] < best) best = measured[i]
      }
      return 100 * (chosen / best - 1)
    }
    function sort(x, n, i, j, v) {
      for (i = 2; i <= n; ++i) { v = x[i]; for (j = i - 1; j >= 1 && x[j] > v; --j) x[j + 1] = x[j]; x[j + 1] = v }
    }
    { projected[NR] = $1; measured[NR] = $2; all[NR] = 1 }
    END {
      srand(1)
      for (i = 1; i <= NR; ++i) for (j = i + 1; j <= NR; ++j) {
        p = projected[i] - projected[j]; m = measured[i] - measured[j]
        if (p * m > 0) ++agree; else if (p * m < 0) ++differ
        if (p) ++of_p; if (m) ++of_m
      }
      for (draw = 1; draw <= 1000; ++draw) {
        n = int(NR / 2); left = NR
        for (i = 1; i <= NR; ++i) { half[i] = rand() * left < n; n -= half[i]; --left }
        regrets[draw] = regret(half)
      }
      sort(regrets, 1000)
      printf "%-12s %3d layouts, Kendall tau %.2f, regret %.1f %%, of halves: median %.1f %%, 90th percentile %.1f %%\n",
        name, NR, (agree - differ) / sqrt(of_p * of_m), regret(all), regrets[500], regrets[900]
    }' "$2"
}

printf '%-12s %-52s %10s %10s\n' model layout projected measured
while read -r name row; do
  [ "$quick" = no ] || row="model.num_layers=2 model.hidden_size=32 model.num_attention_heads=2 model.seq_length=32 model.vocab_size=101"
  # shellcheck disable=SC2086  # words
  {
    printf '&run name = "%s" steps = 6 warmup_steps = 2 verify = .false. /\n&output peak_tflops = 1 /\n' "$name" >"$work/$name.in"
    "$build/bin/gptbench" --search "$work/$name.in" $row run.device=host batch.global_batch_size=8 $keys \
      --machine "$profile" --ranks 2 --top 1000 --write-decks "$work/$name" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  }
  find "$work/$name" -name '*.in' | wc -l >"$work/number"
  awk -v all="$(cat "$work/number")" -v count="$count" 'BEGIN {
    if (count > all) count = all
    for (i = 0; i < count; ++i) print 1 + (count > 1 ? int(i * (all - 1) / (count - 1)) : 0) }' >"$work/chosen"
  for pass in $(seq "$passes"); do
    direction=-n
    [ $((pass % 2)) = 1 ] || direction=-nr
    sort $direction "$work/chosen" | while read -r number; do
      $launch 2 "$build/bin/gptbench" "$work/$name/$name-layout$number.in" output.directory="$work/run" --quiet \
        </dev/null >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
      last "$work/log" sec_per_it >>"$work/$name/$number.measured"
    done
  done
  : >"$work/$name.rows"
  while read -r number; do
    deck=$work/$name/$name-layout$number.in
    "$build/bin/gptbench" --project "$deck" --machine "$profile" --ranks 2 >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    projected=$(last "$work/log" sec_per_it)
    measured=$(awk '{ sum += $1 } END { printf "%.6g", sum / NR }' "$work/$name/$number.measured")
    echo "$projected $measured" >>"$work/$name.rows"
    layout=$(awk -F' = ' '{ sub(/^ */, "", $1); gsub(/\047/, "", $2); value[$1] = $2 }
      END { schedule = (value["pipeline_parallel"] > 1) ? value["pipeline_schedule"] : "-"
            sequence = (value["sequence_parallel"] == ".true.") ? ",sp" : ""
            printf("dp%d,tp%d,pp%d,cp%d,zero%d,mbs%d,%s,%s%s", value["data_parallel"], value["tensor_parallel"],
                   value["pipeline_parallel"], value["context_parallel"], value["zero_stage"],
                   value["micro_batch_size"], value["activation_checkpointing"], schedule, sequence) }' "$deck")
    printf '%-12s %-52s %10s %10s\n' "$name" "$layout" "$projected" "$measured"
  done <"$work/chosen"
  order "$name" "$work/$name.rows" >>"$work/summary"
done <<END
gpt model.preset=gpt2-124m model.seq_length=256 model.num_layers=4 model.vocab_size=16384
llama model.preset=llama-7b model.hidden_size=512 model.num_attention_heads=8 model.num_kv_heads=8 model.ffn_hidden_size=1376 model.seq_length=256 model.num_layers=6 model.vocab_size=8192
small model.num_layers=4 model.hidden_size=256 model.num_attention_heads=4 model.seq_length=512 model.vocab_size=4096
END
cat "$work/summary"
