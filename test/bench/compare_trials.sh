#!/bin/bash
# compare_trials.sh BUILD [TRIALS] [QUOTA]
# How often `gptpost compare` finds a slowdown, and how often it finds one where there is none. Each trial
# compares five runs on one core (A) with five under a CPU quota of QUOTA per cent (B), and with five
# more like A (C), in turn: A B C A B C ... Default: 50 trials, quota 97, which is 3 % slower.
# Needs an idle machine and a cgroup that this user may write (root, version 1 or 2); a trial takes two
# minutes. Not part of the tests.
set -eu
build=${1:?usage: compare_trials.sh BUILD [TRIALS] [QUOTA]}
trials=${2:-50}
quota=${3:-97}
deck="run.duration_s=5 run.verify=F model.num_layers=4 model.hidden_size=256 model.num_attention_heads=4
  model.seq_length=128 model.vocab_size=1024 batch.micro_batch_size=4 output.peak_tflops=1"

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  group=/sys/fs/cgroup/gptbench_trials
  set_quota() { echo "$((quota * 100)) 10000" >"$group/cpu.max"; }
else
  group=/sys/fs/cgroup/cpu/gptbench_trials
  set_quota() { echo 10000 >"$group/cpu.cfs_period_us" && echo $((quota * 100)) >"$group/cpu.cfs_quota_us"; }
fi
if ! { mkdir "$group" && set_quota; } 2>/dev/null; then
  echo "skipped: $group cannot be made, or takes no quota"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"; rmdir "$group"' EXIT
echo "&run name = 'trial' /" >"$work/deck.in"

# one DIRECTORY: a run, in the group of the calling shell.
one() {
  # shellcheck disable=SC2086
  OMP_NUM_THREADS=1 GPTBENCH_CEILINGS=none taskset -c 0 "$build/bin/gptbench" --quiet "$work/deck.in" $deck "output.directory=$1" >/dev/null
}

found=0
false_alarms=0
for ((trial = 1; trial <= trials; ++trial)); do
  rm -rf "$work"/[ABC]*
  for run in 1 2 3 4 5; do
    one "$work/A$run"
    (echo "$BASHPID" >"$group/cgroup.procs" && one "$work/B$run")
    one "$work/C$run"
  done
  slow=$("$build/bin/gptpost" compare "$work"/A*/result.h5 -- "$work"/B*/result.h5 | head -n 1)
  same=$("$build/bin/gptpost" compare "$work"/A*/result.h5 -- "$work"/C*/result.h5 | head -n 1)
  case $slow in *" slower than A"*) found=$((found + 1)) ;; esac
  case $same in *"No difference"*) ;; *) false_alarms=$((false_alarms + 1)) ;; esac
  echo "trial $trial: with quota: $slow"
  echo "trial $trial: without:    $same"
done
echo "$found of $trials slowdowns found, $false_alarms of $trials false alarms"
[ $((100 * found)) -ge $((96 * trials)) ] && [ $((100 * false_alarms)) -le $((2 * trials)) ]
