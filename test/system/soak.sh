#!/bin/bash
# soak.sh SECONDS [--ranks N] [--deck DECK] [KEY=VALUE ...]
# A long run whose memory and open files must stay flat, and which the watchdog must not end. For SECONDS
# it trains DECK (default: a tiny model, thousands of steps per second) on N ranks (default 2; 8 on two
# cores are fourfold oversubscription), saves checkpoints, and samples each rank's resident memory and
# descriptors into soak/samples: seconds, rank, KiB, descriptors, steps. GPTBENCH and GPTBENCH_LAUNCH
# name another program than that of build/release. An hour of the short deck:
#   bash test/system/soak.sh 3600 --deck input/124m_short.in
# soak.sh --judge FILE: judges samples.
#
# What is judged is the least of each quarter of the samples, since a checkpoint that is being written
# takes memory and descriptors for a moment. From the second quarter to the last (in the first one MPI
# makes its connections):
#   descriptors   as many
#   memory        256 bytes per step, which a rank keeps of each (StepSample), and 1 MiB: the kernel
#                 counts resident pages in batches of 64 per thread, and an allocator returns no less
#                 than 128 KiB to it
set -u

usage() {
  echo "usage: soak.sh SECONDS [--ranks N] [--deck DECK] [KEY=VALUE ...] | --judge FILE" >&2
  exit 2
}

judge() {
  awk '
    { n = ++count[$2]; kib[$2, n] = $3; open[$2, n] = $4; steps[$2, n] = $5 }
    function least(a, rank, from, to,   i, value) {
      value = a[rank, from]
      for (i = from; i <= to; ++i) if (a[rank, i] < value) value = a[rank, i]
      return value
    }
    END {
      for (rank in count) {
        n = count[rank]
        if (n < 8) { print "rank " rank ": " n " samples are too few"; bad = 1; continue }
        a = int(n / 4) + 1; b = int(n / 2); c = int(3 * n / 4) + 1
        grown = least(kib, rank, c, n) - least(kib, rank, a, b)
        opened = least(open, rank, c, n) - least(open, rank, a, b)
        taken = steps[rank, n] - steps[rank, a]
        allowed = 1024 + taken / 4
        wrong = grown > allowed || opened > 0
        bad = bad || wrong
        printf "rank %s: %d samples, %d steps; resident %d KiB, %+d KiB of at most %d; descriptors %d, %+d%s\n", rank, n,
          taken, kib[rank, n], grown, allowed, open[rank, n], opened, wrong ? ": NOT FLAT" : ""
      }
      exit bad || !NR
    }' "$1"
}

[ $# -ge 1 ] || usage
if [ "$1" = --judge ]; then
  [ $# -eq 2 ] || usage
  judge "$2"
  exit
fi
seconds=$1
shift
ranks=2
deck=
keys=()
while [ $# -gt 0 ]; do
  case $1 in
    --ranks) shift; [ $# -gt 0 ] || usage; ranks=$1 ;;
    --deck) shift; [ $# -gt 0 ] || usage; deck=$1 ;;
    *=*) keys+=("$1") ;;
    *) usage ;;
  esac
  shift
done
case $seconds$ranks in *[!0-9]*) usage ;; esac
build=$(cd "$(dirname "$0")/../.." && pwd)/build/release
: "${GPTBENCH:=$build/bin/gptbench}" "${GPTBENCH_LAUNCH:=$build/launch}"

rm -rf soak
mkdir soak
if [ -z "$deck" ]; then
  deck=$PWD/soak/tiny.in
  printf "&run name = 'tiny' verify = F /\n&model num_layers = 1 hidden_size = 16 num_attention_heads = 2 seq_length = 8 vocab_size = 32 /\n&batch global_batch_size = %d /\n&output peak_tflops = 1.0 /\n" "$ranks" >"$deck"
fi

read -r -a launch <<<"$GPTBENCH_LAUNCH $ranks"
# shellcheck disable=SC2016  # expanded by the inner shell
"${launch[@]}" sh -c 'echo $$ >"soak/pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$0" "$@"' "$GPTBENCH" "$deck" \
  run.duration_s="$seconds" run.watchdog_s=10 output.directory=soak/out checkpoint.directory=soak/checkpoints \
  checkpoint.every_s=$((seconds / 20 + 1)) "${keys[@]}" >soak/out.txt 2>soak/err.txt &
job=$!
trap 'kill "$job" 2>/dev/null' EXIT

# 40 samples and more, the first after the first step.
pause=$(awk -v s="$seconds" 'BEGIN { p = s / 50; print (p < 0.1 ? 0.1 : p > 10 ? 10 : p) }')
begin=$SECONDS
while kill -0 "$job" 2>/dev/null; do
  sleep "$pause"
  steps=$(tail -n 1 soak/out/steps.csv 2>/dev/null | cut -d, -f1)
  case $steps in '' | *[!0-9]*) continue ;; esac
  for ((rank = 0; rank < ranks; ++rank)); do
    process=/proc/$(cat "soak/pid.$rank")
    kib=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "$process/status" 2>/dev/null)
    descriptors=("$process"/fd/*)
    [ -n "$kib" ] && [ "${#descriptors[@]}" -gt 1 ] && echo "$((SECONDS - begin)) $rank $kib ${#descriptors[@]} $steps" >>soak/samples
  done
done
status=0
wait "$job" || status=$?
trap - EXIT
if [ "$status" -ne 0 ]; then
  echo "FAILED: the run ended with status $status"
  tail -n 20 soak/out.txt soak/err.txt
  exit 1
fi
# When the run is over, ranks gather their series and give back what they have.
last=$(tail -n 1 soak/out/steps.csv | cut -d, -f1)
awk -v last="$last" '$5 < last' soak/samples >soak/judged
judge soak/judged || {
  echo "FAILED: memory or descriptors are not flat; soak/judged"
  exit 1
}
tail -n 1 soak/out.txt
