#!/bin/bash
# The short twins of the published tables' sweeps run: one or two rows of each, with fewer steps.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
fresh_folders

# twin TABLE ROWS SETTINGS...: the rows that the settings leave of input/TABLE/sweep_short.in are valid.
twin() {
  local table=$1 rows=$2
  shift 2
  case="twin of $table"
  status=0
  (cd "$work" && exec timeout --kill-after=10 "${GPTBENCH_COMMAND_S:-180}" "$GPTBENCH" --sweep "$GPTBENCH_SOURCE_DIR/input/$table/sweep_short.in" \
    sweep.launcher="'$GPTBENCH_LAUNCH {ranks}'" run.steps=2 run.warmup_steps=1 output.peak_tflops=1 "$@") >out 2>err || status=$?
  [ "$status" -eq 0 ] || fail "status $status"
  grep -Eq "^Sweep ${table}_short: $rows rows, $rows OK; " out || fail "$(tail -4 out)"
}
twin mpt 2 "sweep.vary='seq_length = 128', 'activation_checkpointing = none, full'"
twin zero 2 "sweep.rows='1 2 3 activations device T', '2 1 2 optimizer host F'" run.find_largest_steps=2
twin fugaku 2 "sweep.vary='(ranks, tensor_parallel, micro_batch_size) = (1, 1, 2), (2, 2, 1)'" model.num_layers=1
twin megatron 2 "sweep.rows='1 2 1 2 4 0 none device', '1 2 2 1 4 0 none device'"
finish
