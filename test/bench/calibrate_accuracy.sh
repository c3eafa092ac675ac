#!/bin/sh
# calibrate_accuracy.sh BUILD [--seconds S] [--quick] [KEY=VALUE ...]
# How well the profile of `gptbench --calibrate` predicts this machine: calibrates 1 and 2 ranks without
# a deck, S seconds each (default 300), then runs 20 decks, ten on each number of ranks, none of which the
# profile has seen, and prints the signed error of each, their mean size and the largest; and how much of
# each measured step `gptpost explain` explains, with the least. The machine must be idle; some 20 minutes
# on two cores. --quick makes the models tiny, to see that the script works. KEY=VALUE are deck keys of all
# runs.
set -eu

usage() {
  echo "usage: calibrate_accuracy.sh BUILD [--seconds S] [--quick] [KEY=VALUE ...]" >&2
  exit 2
}
[ $# -ge 1 ] || usage
build=$1
shift
seconds=300
keys=
replaced='^$' # what --quick takes out of a row
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) shift; [ $# -gt 0 ] || usage; seconds=$1 ;;
    --quick)
      replaced='model\.[a-z_]*=[^ ]* *'
      keys="$keys model.num_layers=1 model.hidden_size=32 model.num_attention_heads=2 model.seq_length=32 model.vocab_size=101"
      ;;
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
printf '&run name = "row" steps = 6 warmup_steps = 2 verify = .false. /\n&output peak_tflops = 1 /\n' >"$work/deck.in"

last() { sed -n 's/^GPTBENCH .* '"$2"'=\([^ ]*\).*/\1/p' "$1" | tail -n 1; }

for ranks in 1 2; do
  # shellcheck disable=SC2086  # words
  $launch $ranks "$build/bin/gptbench" --calibrate run.device=host run.time_limit_s="$seconds" \
    output.directory="$work/calibrated$ranks" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  tail -n 1 "$work/log"
done

printf '%-64s %5s %10s %10s %8s %9s\n' deck ranks measured projected error explained
for ranks in 1 2; do
  while read -r row; do
    # shellcheck disable=SC2046,SC2086  # words
    set -- batch.global_batch_size=$((ranks * 2)) $(echo "$row" | sed "s/$replaced//g") $keys
    # shellcheck disable=SC2086  # words
    $launch $ranks "$build/bin/gptbench" "$work/deck.in" "$@" run.device=host output.directory="$work/run" \
      --quiet </dev/null >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    measured=$(last "$work/log" sec_per_it)
    "$build/bin/gptbench" --project "$work/deck.in" --machine "$work/calibrated$ranks/calibration.in" \
      --ranks "$ranks" "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    explained=$("$build/bin/gptpost" explain --profile "$work/calibrated$ranks/calibration.in" "$work/run/result.h5" |
      sed -n 's/.* \([0-9.]*\) % explained$/\1/p')
    echo "$(echo "$row" | sed 's/[a-z]*\.//g' | tr ' ' ',') $ranks $measured $(last "$work/log" sec_per_it) $explained"
  done <<END
model.preset=gpt2-124m model.seq_length=256 model.num_layers=4
model.preset=gpt2-124m model.seq_length=512 model.num_layers=3
model.preset=gpt2-124m model.seq_length=1024 model.num_layers=2
model.preset=gpt2-124m model.seq_length=256 model.num_layers=4 precision.compute=bf16
model.preset=gpt2-124m model.seq_length=512 model.num_layers=2 memory.activation_checkpointing=full
model.preset=gpt2-355m model.seq_length=256 model.num_layers=2
model.preset=gpt2-355m model.seq_length=512 model.num_layers=2 parallel.zero_stage=1
model.preset=llama-7b model.hidden_size=512 model.num_attention_heads=8 model.num_kv_heads=8 model.ffn_hidden_size=1376 model.seq_length=512 model.num_layers=4
model.preset=mpt-125m model.seq_length=512 model.num_layers=4 parallel.zero_stage=3
model.preset=bert-345m model.seq_length=256 model.num_layers=2
END
done >"$work/rows"
awk '{ error = 100 * ($4 / $3 - 1); size = error < 0 ? -error : error; sum += size
       if (size > most) most = size
       if (NR == 1 || $5 < least) least = $5
       printf "%-64s %5d %10.4g %10.4g %+7.1f%% %8.1f%%\n", $1, $2, $3, $4, error, $5 }
     END { printf "%d decks: mean error %.1f %%, largest %.1f %%; explained: at least %.1f %%\n",
                  NR, sum / NR, most, least }' "$work/rows"
