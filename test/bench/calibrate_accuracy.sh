#!/bin/sh
# calibrate_accuracy.sh BUILD [--seconds S] [--passes P] [--other | --decks FILE] [--quick] [KEY=VALUE ...]
# How well the profile of `gptbench --calibrate` predicts this machine. For 1 and 2 ranks: calibrates
# without a deck, S seconds (default 420), and runs ten decks, none of which the profile has seen, in P
# passes (default 1), half of them, rounded down, before the calibration. Prints for each deck the mean of
# its measured times, by how much the passes differ from one another (which no profile can predict), the
# signed error of the projection and two shares of the step by `gptpost explain`: "explained", the time in a
# region or in communication (the rest are gaps between operations), and "covered", the part of it that limits
# at the profile's rates, launches, shapes, imbalance, bubble and messages account for. Then the errors' mean size and
# the largest, and the least shares. The machine must be idle; a pass takes some 8 minutes on two cores, the calibrations
# 14. --other takes ten decks whose widths or rows are not in the default grid, --decks those of FILE, each a line of
# KEY=VALUE. --quick makes the models tiny, to see that the script works. KEY=VALUE are deck keys of all runs.
set -eu

usage() {
  echo "usage: calibrate_accuracy.sh BUILD [--seconds S] [--passes P] [--other | --decks FILE] [--quick] [KEY=VALUE ...]" >&2
  exit 2
}
[ $# -ge 1 ] || usage
build=$1
shift
seconds=420
passes=1
list=usual
given=/dev/null
keys=
replaced='^$' # what --quick takes out of a row
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) shift; [ $# -gt 0 ] || usage; seconds=$1 ;;
    --passes) shift; [ $# -gt 0 ] || usage; passes=$1 ;;
    --other) list=other ;;
    --decks) shift; [ -r "${1-}" ] || usage; list=given; given=$1 ;;
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

cat >"$work/usual" <<END
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
cat >"$work/other" <<END
model.preset=gpt2-124m model.hidden_size=640 model.num_attention_heads=10 model.seq_length=384 model.num_layers=4
model.preset=gpt2-124m model.hidden_size=896 model.num_attention_heads=14 model.seq_length=320 model.num_layers=2
model.preset=gpt2-124m model.hidden_size=384 model.num_attention_heads=6 model.seq_length=1536 model.num_layers=2
model.preset=gpt2-124m model.seq_length=768 model.num_layers=2
model.preset=gpt2-124m model.seq_length=640 model.num_layers=2 precision.compute=bf16
model.preset=gpt2-355m model.seq_length=384 model.num_layers=2 memory.activation_checkpointing=full
model.preset=llama-7b model.hidden_size=640 model.num_attention_heads=10 model.num_kv_heads=10 model.ffn_hidden_size=1728 model.seq_length=384 model.num_layers=3
model.preset=llama-7b model.hidden_size=896 model.num_attention_heads=14 model.num_kv_heads=2 model.ffn_hidden_size=2432 model.seq_length=192 model.num_layers=3
model.preset=mpt-125m model.hidden_size=576 model.num_attention_heads=9 model.seq_length=448 model.num_layers=4 parallel.zero_stage=2
model.preset=bert-345m model.hidden_size=896 model.num_attention_heads=14 model.seq_length=320 model.num_layers=2
END
grep . "$given" >"$work/given" || [ $list != given ] || usage
mv "$work/$list" "$work/decks"

# Keys of ROW, a line of the list above, as words.
# shellcheck disable=SC2046,SC2086  # words
keys_of() { echo batch.global_batch_size=$((ranks * 2)) $(echo "$1" | sed "s/$replaced//g") $keys; }

# Runs every deck once; the results of pass P lie in $work/$ranks/P/NUMBER OF DECK.
run_pass() {
  deck=0
  while read -r row; do
    deck=$((deck + 1))
    # shellcheck disable=SC2046  # words
    $launch $ranks "$build/bin/gptbench" "$work/deck.in" $(keys_of "$row") run.device=host \
      output.directory="$work/$ranks/$1/$deck" --quiet </dev/null >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    last "$work/log" sec_per_it >"$work/$ranks.$1.$deck"
  done <"$work/decks"
}

for ranks in 1 2; do
  # Half of the passes run before the calibration and half after, so that a machine that grows slower or
  # faster meanwhile does so for both.
  for pass in $(seq $((passes / 2))); do run_pass "$pass"; done
  profile=$work/calibrated$ranks/calibration.in
  # shellcheck disable=SC2086  # words
  $launch $ranks "$build/bin/gptbench" --calibrate run.device=host run.time_limit_s="$seconds" \
    output.directory="$work/calibrated$ranks" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  tail -n 1 "$work/log"
  for pass in $(seq $((passes / 2 + 1)) "$passes"); do run_pass "$pass"; done

  deck=0
  while read -r row; do
    deck=$((deck + 1))
    # shellcheck disable=SC2046  # words
    "$build/bin/gptbench" --project "$work/deck.in" --machine "$profile" --ranks "$ranks" $(keys_of "$row") \
      >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    for pass in $(seq "$passes"); do
      shares=$("$build/bin/gptpost" explain --profile "$profile" "$work/$ranks/$pass/$deck/result.h5" |
        sed -n 's/.* \([0-9.]*\) % explained$/\1/p; s/^ *covered *\([0-9.]*\) % .*/\1/p' | tr '\n' ' ')
      echo "$(echo "$row" | sed 's/[a-z]*\.//g' | tr ' ' ',') $ranks $(cat "$work/$ranks.$pass.$deck")" \
        "$(last "$work/log" sec_per_it) $shares"
    done
  done <"$work/decks" >>"$work/rows"
done
awk 'BEGIN { printf "%-64s %5s %10s %8s %10s %8s %9s %9s\n", "deck", "ranks", "measured", "passes", "projected", "error", "explained", "covered" }
     { deck = sprintf("%-64s %5d", $1, $2)
       if (!(deck in runs)) { decks[++count] = deck; low[deck] = high[deck] = $3; least[deck] = $5; covered[deck] = $6 }
       ++runs[deck]; sum[deck] += $3; projected[deck] = $4
       if ($3 < low[deck]) low[deck] = $3
       if ($3 > high[deck]) high[deck] = $3
       if ($5 < least[deck]) least[deck] = $5
       if ($6 < covered[deck]) covered[deck] = $6 }
     END { for (i = 1; i <= count; ++i) {
             deck = decks[i]; measured = sum[deck] / runs[deck]
             error = 100 * (projected[deck] / measured - 1); size = error < 0 ? -error : error
             spread = 100 * (high[deck] - low[deck]) / measured
             sizes += size; spreads += spread
             if (size > most) most = size
             if (i == 1 || least[deck] < least_of_all) least_of_all = least[deck]
             if (i == 1 || covered[deck] < least_covered) least_covered = covered[deck]
             printf "%s %10.4g %7.1f%% %10.4g %+7.1f%% %8.1f%% %8.1f%%\n", deck, measured, spread, projected[deck], error, least[deck], covered[deck] }
           printf "%d decks: mean error %.1f %%, largest %.1f %%; explained: at least %.1f %%; covered: at least %.1f %%; passes differ by %.1f %%\n",
                  count, sizes / count, most, least_of_all, least_covered, spreads / count }' "$work/rows"
