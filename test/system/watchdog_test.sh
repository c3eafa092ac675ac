#!/bin/bash
# A rank that is stopped, killed or hung, before the first step, in a collective, in a receive, in a
# checkpoint: all other ranks name it and end. A slow run goes on. GPTBENCH_STOPS: stops at random
# places, one after the other. Others name a stopped rank within run.watchdog_s and 5 s of the SIGSTOP.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
source "$GPTBENCH_SOURCE_DIR/test/system/naming_time.sh"
fresh_folders
deck=$decks/tiny.in
limit=2
steps=2000000
# The failpoint is that of one rank.
cat >"$decks/faulty" <<'END_OF_SCRIPT'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
echo $$ >"$seats/$rank"
[ "$rank" = "$faulty_rank" ] || unset GPTBENCH_FAILPOINT
exec "$program" "$@"
END_OF_SCRIPT
chmod +x "$decks/faulty"
export program=$GPTBENCH faulty_rank seats=$PWD/seats
longest=0 longest_naming=0

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
  local what=$3 at=$4 other
  faulty "$1" "$2" "${@:5}"
  [ "$status" -eq 6 ] || fail "status $status instead of 6"
  for ((other = 0; other < $5; ++other)); do
    [ "$other" -eq "$1" ] || grep -Eq "^gptbench: rank $other on [^ ]+: $what.*; not reached: '$at'; the run ends" err ||
      fail "rank $other does not say '$what ... $at': $(grep ^gptbench: err)"
  done
}

stopped() { # stopped RANK FAILPOINT AT RANKS ARGUMENTS...
  local begin=$SECONDS watcher passed
  rm -rf "$seats"
  mkdir -p "$seats"
  touch "$seats/watched"
  time_naming "$1" "$4" &
  watcher=$!
  named "$1" "$2/stop" "rank $1 on [^ ]+ has been stopped for more than $limit s, its last operation: '.*'" "${@:3}"
  grep -q "^rank $1 on .* (does not answer): " "$work/output/tiny/last_operations.txt" || fail "no last operations of rank $1"
  [ "$(grep -c '^rank .*: [0-9]* operations and waits' "$work/output/tiny/last_operations.txt")" -eq "$4" ] || fail "not of all ranks"
  rm "$seats/watched"
  wait "$watcher"
  passed=$(cat "$seats/passed" 2>/dev/null)
  [ "${passed:-999999}" -le $((1000 * (limit + 5))) ] || fail "named ${passed:-?} ms after the SIGSTOP"
  longest_naming=$((${passed:-0} > longest_naming ? ${passed:-0} : longest_naming))
  longest=$((SECONDS - begin > longest ? SECONDS - begin : longest))
  count=$((count + 1))
}
# Before the deck is read run.watchdog_s is not known.
GPTBENCH_START_S=6 faulty 1 initialise/stop 3 "$deck"
[ "$status" -eq 6 ] || fail "status $status instead of 6"
for other in 0 2; do
  grep -q "^gptbench: rank $other on .*: MPI has not started, or the deck is not read, after 6 s: " err || fail "rank $other: $(cat err)"
done
count=0
stopped 1 layout 'before the first step: layout.*' 3 "$deck" run.layout=auto run.machine=a100-80 batch.global_batch_size=6
stopped 1 autotuning 'before the first step: autotuning.*' 2 "$deck"
stopped 1 linear_forward 'verification, step 1: .*' 3 "$deck" run.verify=T
stopped 1 all_reduce:40 'step [0-9]+: all_reduce [a-z]+.*' 3 "$deck"
stopped 0 all_gather:9 'step [0-9]+: [a-z_]+ .*' 3 "$deck" parallel.zero_stage=3
stopped 1 receive:9 'step [0-9]+: (receive|all_reduce) .*' 2 "$deck" model.num_layers=2 parallel.pipeline_parallel=2
# Rank 0 waits for the checksums of all, the others go on to the next step.
stopped 2 checkpoint_written:2 'step [0-9]+: (checkpoint|all_reduce).*' 3 "$deck" checkpoint.directory=ck checkpoint.every_steps=3
# Rank 0 alone creates a checkpoint.
places=('? autotuning:1' '? weights:1' '? linear_forward' '? adamw' '? all_reduce' '? squared_norm'
  '? receive model.num_layers=3 parallel.pipeline_parallel=3' '? send model.num_layers=3 parallel.pipeline_parallel=3'
  '? all_gather parallel.zero_stage=3' '? reduce_scatter parallel.zero_stage=3'
  '? checkpoint_written' '0 checkpoint_created' '0 checkpoint_published')
first=$RANDOM
for ((stop = 0; stop < ${GPTBENCH_STOPS:-2}; ++stop)); do
  read -r -a place <<<"${places[(first + stop) % ${#places[@]}]}"
  [[ ${place[1]} == *:* ]] || place[1]=${place[1]}:$((1 + RANDOM % 9))
  rank=$((RANDOM % 3))
  [ "${place[0]}" = '?' ] || rank=${place[0]}
  stopped "$rank" "${place[1]}" '.*' 3 "$deck" "${place[@]:2}" checkpoint.directory=ck checkpoint.every_steps=2
done
echo "$count stops; all others had named the rank and ended at most $longest_naming ms after its SIGSTOP, run.watchdog_s = $limit"

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
echo "longest time from the start of a run with a stopped rank to its end: $longest s"

# Killed, under a launcher that does not end the others.
if [[ "$GPTBENCH_LAUNCH" == *oversubscribe* ]]; then
  GPTBENCH_LAUNCH=${GPTBENCH_LAUNCH/--oversubscribe/--oversubscribe --enable-recovery} faulty 1 all_reduce:40 3 "$deck"
  for other in 0 2; do
    grep -q "^gptbench: rank $other on .*: rank 1 on .* has been dead for more than $limit s" err || fail "rank $other: $(cat err)"
  done
fi

# Slow, and alive: a rank computes for long in one operation while the others wait, and gets all of a
# processor or next to nothing of it.
steps=8
for per_node in 3 1; do
  GPTBENCH_RANKS_PER_NODE=$per_node faulty 1 linear_forward:20/busy 3 "$deck"
  [ "$status" -eq 0 ] || fail "a live run ended with status $status"
done
faulty 1 linear_forward:20/starved 3 "$deck"
[ "$status" -eq 0 ] || fail "a live run ended with status $status"

# Stopped behind its result, where the others wait for it in the end of MPI.
faulty 1 finalize/stop 3 "$deck"
[ "$status" -eq 6 ] || fail "status $status instead of 6"
check_result "$work/output/tiny/result.h5" OK
for other in 0 2; do
  grep -q "^gptbench: rank $other on .*: the end of MPI takes more than 10 s: " err || fail "rank $other: $(grep ^gptbench: err)"
done

# timed_job TIME: starts three ranks that would end after TIME, and waits for their first steps.
timed_job() {
  rm -rf "$work" out
  mkdir -p "$work"
  # shellcheck disable=SC2016  # expanded by the inner shell
  (cd "$work" && read -r -a launch <<<"$GPTBENCH_LAUNCH 3" &&
    exec "${limited[@]}" "${launch[@]}" sh -c 'echo $$ >>pids; exec "$0" "$@"' "$GPTBENCH" "$deck" run.steps=2000000000 \
      run.time_limit_s="$1" run.watchdog_s=$limit) >out 2>err &
  job=$!
  await '^ *3/2000000000 ' out "$job"
  mapfile -t pids <"$work/pids"
}

# All ranks wait for each other, ready to run, and for five times the limit others have their processor:
# each main thread runs only where nothing else wants to, beside eight that always do.
case="no processor"
timed_job 14
processor=$(taskset -cp "${pids[0]}" | sed 's/.*: *//; s/[-,].*//')
for pid in "${pids[@]}"; do
  { taskset -cp "$processor" "$pid" && chrt --idle -p 0 "$pid"; } >/dev/null
done
busy=()
for _ in 1 2 3 4 5 6 7 8; do
  taskset -c "$processor" sh -c 'while :; do :; done' &
  busy+=($!)
done
sleep $((5 * limit))
kill "${busy[@]}"
for pid in "${pids[@]}"; do chrt --other -p 0 "$pid"; done  # or other tests could keep them from it for ever
await_end "$job"
[ "$status" -eq 8 ] || fail "status $status instead of 8"

# Stopped for less than the limit, all together as well (a batch system that suspends a job).
case="suspended"
timed_job 14
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
