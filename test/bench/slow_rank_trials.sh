#!/bin/bash
# slow_rank_trials.sh BUILD [TRIALS] [QUOTA]
# How often `gptpost explain` names a rank that is slowed, and how often it names one where none is. Each
# trial runs a small deck on two ranks twice: once undisturbed, once with one rank, in turn 0 and 1, under
# a CPU quota of QUOTA per cent. Default: 50 trials, quota 80. Needs an idle machine with two processors
# and a cgroup that this user may write (root, version 1 or 2); a trial takes some 15 seconds. Not part of
# the tests.
set -eu
build=${1:?usage: slow_rank_trials.sh BUILD [TRIALS] [QUOTA]}
trials=${2:-50}
quota=${3:-80}
deck="run.steps=60 run.warmup_steps=10 run.verify=F model.num_layers=4 model.hidden_size=256
  model.num_attention_heads=4 model.seq_length=128 model.vocab_size=1024 batch.micro_batch_size=4
  output.peak_tflops=1"

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  group=/sys/fs/cgroup/gptbench_slow
  set_quota() { echo "$((quota * 100)) 10000" >"$group/cpu.max"; }
else
  group=/sys/fs/cgroup/cpu/gptbench_slow
  set_quota() { echo 10000 >"$group/cpu.cfs_period_us" && echo $((quota * 100)) >"$group/cpu.cfs_quota_us"; }
fi
if ! { mkdir "$group" && set_quota; } 2>/dev/null; then
  echo "skipped: $group cannot be made, or takes no quota"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"; rmdir "$group"' EXIT
echo "&run name = 'trial' /" >"$work/deck.in"
# One rank; the one that SLOW names joins the group with the quota first.
cat >"$work/rank.sh" <<'RANK'
#!/bin/bash
if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-none}}" = "$SLOW" ]; then echo $$ >"$GROUP/cgroup.procs"; fi
exec "$@"
RANK
chmod +x "$work/rank.sh"
export GROUP=$group OMP_NUM_THREADS=1 GPTBENCH_CEILINGS=none

# named SLOW DIRECTORY: the ranks that are named in a run in which rank SLOW (or none) has the quota.
named() {
  # shellcheck disable=SC2086
  SLOW=$1 ${GPTBENCH_LAUNCH:-mpiexec -n} 2 "$work/rank.sh" "$build/bin/gptbench" --quiet "$work/deck.in" $deck \
    "output.directory=$2" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  "$build/bin/gptpost" explain "$2/result.h5" | grep '^ *rank [0-9]* on ' >"$2/named" || true
  sed 's/^ *rank \([0-9]*\) on .*/\1/' "$2/named"
}

found=0
false_alarms=0
for ((trial = 1; trial <= trials; ++trial)); do
  none=$(named none "$work/quiet$trial")
  slow=$((trial % 2))
  by_quota=$(named $slow "$work/slow$trial")
  echo "trial $trial: undisturbed: '$none'; rank $slow at $quota %: '$by_quota'"
  [ "$by_quota" = "$slow" ] && found=$((found + 1))
  [ -n "$none" ] && false_alarms=$((false_alarms + 1)) && cat "$work/quiet$trial/named"
  rm -rf "$work/quiet$trial" "$work/slow$trial"
done
echo "$found of $trials slow ranks named, $false_alarms of $trials undisturbed runs with a name"
[ "$found" -eq "$trials" ] && [ "$false_alarms" -eq 0 ]
