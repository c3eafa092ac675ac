#!/bin/bash
# compare_trials.sh BUILD [TRIALS] [QUOTA]
# How often `gptpost compare` finds a slowdown, and how often it finds one where there is none. Each trial
# compares five runs on one core (A) with five under a CPU quota of QUOTA per cent (B), and with five
# more like A (C), in turn: A B C A B C ... Default: 50 trials, quota 97, which is 3 % slower. The cores
# of CORES (0) share the trials. A run takes RUN_S seconds (8), a trial fifteen runs, two minutes. A trial
# begins when three quarters of the steps of a run of 4 s were within QUIET per cent (4) of the fastest. Needs an
# idle machine and a cgroup that this user may write (root, version 1 or 2). Not part of the tests.
set -eu
build=${1:?usage: compare_trials.sh BUILD [TRIALS] [QUOTA]}
trials=${2:-50}
quota=${3:-97}
run_s=${RUN_S:-8}
# About 0.6 MB, mostly within a core's second-level cache: what other virtual machines take of the last level
# and of the memory's bandwidth is not what is to be found. A step takes about a period of the quota, 0.1 s,
# so that the fastest steps are slowed as well.
deck="run.verify=F model.num_layers=1 model.hidden_size=64 model.num_attention_heads=1
  model.seq_length=32 model.vocab_size=128 batch.micro_batch_size=1 batch.global_batch_size=512 output.peak_tflops=1"

# The kernel's usual period, 0.1 s: each stop of a virtual processor costs time of its own.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  group=/sys/fs/cgroup/gptbench_trials
  set_quota() { echo "$((quota * 1000)) 100000" >"$1/cpu.max"; }
else
  group=/sys/fs/cgroup/cpu/gptbench_trials
  set_quota() { echo 100000 >"$1/cpu.cfs_period_us" && echo $((quota * 1000)) >"$1/cpu.cfs_quota_us"; }
fi
read -ra cores <<<"${CORES:-0}"
for core in "${cores[@]}"; do
  if ! { mkdir -p "$group.$core" && set_quota "$group.$core"; } 2>/dev/null; then
    echo "skipped: $group.$core cannot be made, or takes no quota"
    exit 77
  fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"; for core in "${cores[@]}"; do rmdir "$group.$core"; done' EXIT
echo "&run name = 'trial' /" >"$work/deck.in"

# one CORE DIRECTORY SECONDS: a run, in the group of the calling shell.
one() {
  # shellcheck disable=SC2086
  OMP_NUM_THREADS=1 GPTBENCH_CEILINGS=none taskset -c "$1" "$build/bin/gptbench" --quiet "$work/deck.in" $deck \
    "output.directory=$2" "run.duration_s=$3" >/dev/null || echo "a run failed: nothing can be said" >>"$work/failed"
}

# until_quiet CORE: returns when the core is. What is looked at is not a run of a trial.
until_quiet() {
  local probe
  while [ ! -e "$work/failed" ]; do
    probe=$(mktemp -d "$work/probe.XXXX")
    one "$1" "$probe" 4
    if cut -d , -f 4 "$probe/steps.csv" | tail -n +2 | sort -g |
      awk -v most="${QUIET:-4}" '{ s[NR] = $1 } END { exit s[int(0.75 * NR)] > (1 + most / 100) * s[1] }'; then break; fi
    echo "$1" >>"$work/waits"
  done
}

# trials_on CORE: what is left of the trials when the others have taken theirs.
trials_on() {
  local core=$1 trial run at
  for ((trial = 1; trial <= trials; ++trial)); do
    mkdir "$work/$trial" 2>/dev/null || continue
    at=$work/$trial
    until_quiet "$core"
    for run in 1 2 3 4 5; do
      one "$core" "$at/A$run" "$run_s"
      (echo "$BASHPID" >"$group.$core/cgroup.procs" && one "$core" "$at/B$run" "$run_s")
      one "$core" "$at/C$run" "$run_s"
    done
    echo "trial $trial: with quota: $("$build/bin/gptpost" compare "$at"/A*/result.h5 -- "$at"/B*/result.h5 | head -n 1)"
    echo "trial $trial: without:    $("$build/bin/gptpost" compare "$at"/A*/result.h5 -- "$at"/C*/result.h5 | head -n 1)"
    rm -rf "$at"/[ABC]*
  done
}
for core in "${cores[@]}"; do trials_on "$core" & done | tee "$work/log"
if [ -e "$work/failed" ]; then head -n 1 "$work/failed" && exit 1; fi
found=$(grep -c 'with quota: B is .* slower than A' "$work/log" || true)
false_alarms=$(grep -c 'without: *B is ' "$work/log" || true)
waits=$(wc -l 2>/dev/null <"$work/waits" || true)
echo "$found of $trials slowdowns found, $false_alarms of $trials false alarms; waited ${waits:-0} times 4 s for quiet"
[ $((100 * found)) -ge $((96 * trials)) ] && [ $((100 * false_alarms)) -le $((2 * trials)) ]
