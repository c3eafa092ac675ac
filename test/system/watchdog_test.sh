#!/bin/bash
# A rank that is stopped, killed or hung, before the first step, in a collective, in a receive, in a
# checkpoint: all other ranks name it and end. A slow run goes on. GPTBENCH_STOPS: stops at random
# places.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders
deck=$decks/tiny.in
limit=2
steps=2000000
# The failpoint is that of one rank.
cat >"$decks/faulty" <<'END_OF_SCRIPT'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = "$faulty_rank" ] || unset GPTBENCH_FAILPOINT
exec "$program" "$@"
END_OF_SCRIPT
chmod +x "$decks/faulty"
export program=$GPTBENCH faulty_rank
longest=0

faulty() { # faulty RANK FAILPOINT RANKS ARGUMENTS...
  faulty_rank=$1
  local failpoint=$2
  shift 2
  GPTBENCH=$decks/faulty GPTBENCH_FAILPOINT=$failpoint run "$@" run.watchdog_s=$limit run.steps="$steps" output.log_every=1000000
  case="$failpoint on rank $faulty_rank, $case"
}
# named RANK FAILPOINT WHAT AT RANKS ARGUMENTS...: every other rank says that RANK WHAT, and AT, an
# extended pattern, as what was not reached.
named() {
  local what=$3 at=$4 begin=$SECONDS other
  faulty "$1" "$2" "${@:5}"
  [ "$status" -eq 6 ] || fail "status $status instead of 6"
  for ((other = 0; other < $5; ++other)); do
    [ "$other" -eq "$1" ] || grep -Eq "^gptbench: rank $other on [^ ]+: $what.*; not reached: '$at'; the run ends" err ||
      fail "rank $other does not say '$what ... $at': $(grep ^gptbench: err)"
  done
  local seconds=$((SECONDS - begin))
  longest=$((seconds > longest ? seconds : longest))
}
stopped() { # stopped RANK FAILPOINT AT RANKS ARGUMENTS...
  named "$1" "$2/stop" "rank $1 on [^ ]+ has been stopped for more than $limit s, its last operation: '.*'" "${@:3}"
  grep -q "^rank $1 on .* (does not answer): " "$work/output/tiny/last_operations.txt" || fail "no last operations of rank $1"
  [ "$(grep -c '^rank .*: [0-9]* operations and waits' "$work/output/tiny/last_operations.txt")" -eq "$4" ] || fail "not of all ranks"
}
stopped 1 autotuning 'before the first step: autotuning.*' 2 "$deck"
stopped 1 linear_forward 'verification, step 1: .*' 3 "$deck" run.verify=T
stopped 1 all_reduce:40 'step [0-9]+: all_reduce [a-z]+.*' 3 "$deck"
stopped 0 all_gather:9 'step [0-9]+: [a-z_]+ .*' 3 "$deck" parallel.zero_stage=3
stopped 1 receive:9 'step [0-9]+: (receive|all_reduce) .*' 2 "$deck" model.num_layers=2 parallel.pipeline_parallel=2
stopped 2 checkpoint_written:2 'step [0-9]+: checkpoint.*' 3 "$deck" checkpoint.directory=ck checkpoint.every_steps=3
for ((stop = 0; stop < ${GPTBENCH_STOPS:-2}; ++stop)); do
  kinds=(linear_forward adamw all_reduce squared_norm checkpoint_written checkpoint_created)
  kind=$((RANDOM % 6))
  # Rank 0 alone creates a checkpoint.
  stopped $((kind == 5 ? 0 : RANDOM % 3)) "${kinds[kind]}:$((1 + RANDOM % 9))" '.*' 3 "$deck" checkpoint.directory=ck \
    checkpoint.every_steps=2
done

# It lives, but has left the others alone: no rank makes progress.
named 1 all_reduce:40/hang "no rank has made progress for more than $limit s; furthest behind is rank 1 on [^ ]+, at 'step [0-9]+: all_reduce .*'" \
  'step [0-9]+: all_reduce .*' 3 "$deck"

# One rank per node: nodes hear of each other by datagrams.
export GPTBENCH_RANKS_PER_NODE=1
silent() { named "$1" "$2" "rank $1 on [^ ]+, and its node, has been silent for more than $limit s" '.*' "${@:3}"; }
silent 1 all_reduce:40/stop 2 "$deck"
grep -q 'no datagram' err && fail "a node that was heard of is warned of: $(cat err)"
silent 0 all_reduce:40/stop 3 "$deck"
named 2 all_reduce:40/hang 'no rank has made progress' '.*' 3 "$deck"
unset GPTBENCH_RANKS_PER_NODE
echo "longest time from the start of a run to its end: $longest s, run.watchdog_s = $limit"

# Killed, under a launcher that does not end the others.
if [[ "$GPTBENCH_LAUNCH" == *oversubscribe* ]]; then
  GPTBENCH_LAUNCH=${GPTBENCH_LAUNCH/--oversubscribe/--oversubscribe --enable-recovery} faulty 1 all_reduce:40 3 "$deck"
  for other in 0 2; do
    grep -q "^gptbench: rank $other on .*: rank 1 on .* has been dead for more than $limit s" err || fail "rank $other: $(cat err)"
  done
fi

# Slow, and alive: a rank computes for long in one operation while the others wait.
steps=8
for per_node in 3 1; do
  GPTBENCH_RANKS_PER_NODE=$per_node faulty 1 linear_forward:20/busy 3 "$deck"
  [ "$status" -eq 0 ] || fail "a live run ended with status $status"
done

# Stopped for less than the limit, all together as well (a batch system that suspends a job).
rm -rf "$work" out
mkdir -p "$work"
case="suspended"
# shellcheck disable=SC2016  # expanded by the inner shell
(cd "$work" && read -r -a launch <<<"$GPTBENCH_LAUNCH 3" &&
  exec "${limited[@]}" "${launch[@]}" sh -c 'echo $$ >>pids; exec "$0" "$@"' "$GPTBENCH" "$deck" run.steps=2000000000 \
    run.time_limit_s=14 run.watchdog_s=$limit) >out 2>err &
job=$!
await '^ *3/2000000000 ' out "$job"
mapfile -t pids <"$work/pids"
kill -STOP "${pids[@]}"
sleep $((2 * limit))
kill -CONT "${pids[@]}"
sleep 1
kill -STOP "${pids[1]}"
sleep $((limit / 2))
kill -CONT "${pids[1]}"
await_end "$job"
[ "$status" -eq 8 ] || fail "status $status instead of 8"

refused 2 'run.watchdog_s = 0.5 would end live runs' 0 "$deck" run.watchdog_s=0.5
finish
