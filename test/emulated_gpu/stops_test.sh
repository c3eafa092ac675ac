#!/bin/bash
# A rank that is stopped on emulated GPUs, one per rank, while others wait for it in NCCL or in MPI: all of
# them name it and end; how long that takes is printed. GPTBENCH_STOPS: stops at random places, after those
# at chosen ones.
set -u
source "$GPTBENCH_SOURCE_DIR/test/emulated_gpu/small_runs.sh"
source "$GPTBENCH_SOURCE_DIR/test/system/naming_time.sh"
export GPTBENCH_EMULATED_GPUS=4

# The failpoint is that of one rank.
cat >faulty <<'END_OF_SCRIPT'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
echo $$ >"$seats/$rank"
[ "$rank" = "$faulty_rank" ] || unset GPTBENCH_FAILPOINT
exec "$program" "$@"
END_OF_SCRIPT
chmod +x faulty
export program=$GPTBENCH_EMULATED faulty_rank=1 seats=$PWD/seats
limit=6 longest_naming=0
# shellcheck disable=SC2034  # read by run
steps=200
# stopped NAME FAILPOINT RANKS KEYS...: every other rank says that rank faulty_rank has been stopped.
stopped() {
  local other watcher passed
  rm -rf "$seats"
  mkdir -p "$seats"
  touch "$seats/watched"
  time_naming "$faulty_rank" "$3" &
  watcher=$!
  GPTBENCH_EMULATED=./faulty GPTBENCH_FAILPOINT=$2/stop run "$1" "$3" 6 run.device=cuda run.verify=F run.watchdog_s=$limit \
    run.cuda_graph=false "${@:4}"
  for ((other = 0; other < $3; ++other)); do
    [ "$other" -eq "$faulty_rank" ] ||
      grep -aEq "gptbench: rank $other on [^ ]+: rank $faulty_rank on [^ ]+ has been stopped for more than $limit s, its last operation: '.*'; not reached: '.*'" "$1.log" ||
      fail "$1: rank $other does not name rank $faulty_rank: $(grep -a '^gptbench:' "$1.log")"
  done
  rm "$seats/watched"
  wait "$watcher"
  passed=$(cat "$seats/passed" 2>/dev/null) || fail "$1: rank $faulty_rank was not seen to be stopped"
  longest_naming=$((${passed:-0} > longest_naming ? ${passed:-0} : longest_naming))
  count=$((count + 1))
}
count=0
stopped stopped all_reduce:4 2
says stopped "its last operation: 'step"
stopped before_steps autotuning 2
says before_steps "not reached: 'before the first step: autotuning"
stopped gather all_gather:9 2 parallel.zero_stage=3
stopped receive receive:5 2 parallel.pipeline_parallel=2
stopped checkpoint checkpoint_written:2 2 checkpoint.directory=checkpoint.saved checkpoint.every_steps=2
grep -aq "not reached: 'step [45]: checkpoint" checkpoint.log || fail "checkpoint: $(grep -a '^gptbench:' checkpoint.log)"

places=(autotuning:1 weights:1 linear_forward adamw all_reduce squared_norm attention_backward
  'receive parallel.pipeline_parallel=2' 'send parallel.pipeline_parallel=2'
  'all_gather parallel.zero_stage=3' 'reduce_scatter parallel.zero_stage=3' 'all_reduce parallel.tensor_parallel=2'
  'checkpoint_written checkpoint.directory=random.saved checkpoint.every_steps=2')
first=$RANDOM
for ((stop = 0; stop < ${GPTBENCH_STOPS:-1}; ++stop)); do
  read -r -a place <<<"${places[(first + stop) % ${#places[@]}]}"
  [[ ${place[0]} == *:* ]] || place[0]=${place[0]}:$((1 + RANDOM % 9))
  ranks=2
  [[ ${#place[@]} -gt 1 ]] || ranks=$((2 + RANDOM % 2))
  # shellcheck disable=SC2034  # read by run
  sequences=$((2 * ranks))
  faulty_rank=$((RANDOM % ranks))
  rm -rf random.saved
  before=$failures
  stopped random "${place[0]}" "$ranks" "${place[@]:1}"
  [ "$failures" -eq "$before" ] || echo "  (rank $faulty_rank of $ranks at ${place[*]})"
done
[ "$failures" -gt 0 ] || echo "$count stops; all others had named the rank and ended at most $longest_naming ms after its SIGSTOP, run.watchdog_s = $limit"

# A rank fails in its last forward pass, while its GPU waits for the gradients of the first: it leaves all
# the same.
faulty_rank=0
GPTBENCH_EMULATED=./faulty GPTBENCH_FAILPOINT=linear_forward:22/error sequences=16 run failed 2 6 run.device=cuda run.verify=F \
  run.watchdog_s=60 run.cuda_graph=false parallel.pipeline_parallel=2 parallel.pipeline_schedule=gpipe
says failed 'the failpoint linear_forward was reached'

# A collective that never ends, without an error: no rank makes progress.
GPTBENCH_EMULATED_NCCL_FAULT=silent:1:12 sequences=4 run silent 2 6 run.device=cuda run.verify=F run.watchdog_s=$limit run.cuda_graph=false
says silent "no rank has made progress for more than $limit s; furthest behind is rank "
[ "$(grep -ac 'no rank has made progress' silent.log)" -eq 2 ] || fail "silent: not said by both ranks"

[ "$failures" -eq 0 ]
