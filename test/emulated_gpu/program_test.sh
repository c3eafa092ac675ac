#!/bin/bash
# gptbench on emulated GPUs: what check.sh (check_test.sh) does not see on a machine with one.
set -u

deck=$GPTBENCH_SOURCE_DIR/input/124m_short.in
small=(model.num_layers=2 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=40
  model.vocab_size=250 model.vocab_multiple=8 batch.micro_batch_size=2 batch.global_batch_size=4 run.steps=4
  run.warmup_steps=1 run.attention=native)
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# run NAME RANKS STATUS KEYS...: into NAME.log and NAME/result.h5.
run() {
  local name=$1 ranks=$2 expected=$3 status=0
  shift 3
  # shellcheck disable=SC2086  # a command
  timeout --kill-after=10 180 $GPTBENCH_LAUNCH "$ranks" "$GPTBENCH_EMULATED" "$deck" "${small[@]}" "run.name=$name" "output.directory=$name" "$@" \
    >"$name.log" 2>&1 || status=$?
  if [ "$status" -ne "$expected" ]; then
    fail "$name: status $status, not $expected"
    tail -n 30 "$name.log"
  fi
}
says() { grep -aqF -- "$2" "$1.log" || fail "$1 does not say '$2': $(grep -a '^gptbench:' "$1.log")"; }
steps_of() { grep -aE '^ *[0-9]+/' "$1.log" | awk '{print $2, $3}'; }
same_steps() {
  if [ -z "$(steps_of "$1")" ] || [ "$(steps_of "$1")" != "$(steps_of "$2")" ]; then
    fail "losses of $1 and $2 differ, or there are none"
  fi
}

# Alone: found by itself, and what it chose by measuring gives the same digits again.
run found 1 0 run.device=auto
says found 'emulated GPU'
run again 1 0 run.device=cuda run.algorithms=found/result.h5
same_steps found again

# What it reaches, as a profile.
GPTBENCH_EMULATED_GPU_MIB=256 run calibrated 1 0 --calibrate run.device=cuda run.time_limit_s=1
says calibrated 'GPTBENCH calibration status=OK verdict=VALID '
grep -rq '^  accelerator = 1' calibrated || fail "no profile of an accelerator"

# Too little memory: what the plan says, and what the first steps of a run find.
GPTBENCH_EMULATED_GPU_MIB=24 run small_gpu 1 3 run.device=cuda
says small_gpu 'status=OOM'
run refused 1 2 run.device=cuda run.cuda_graph=true parallel.offload=parameters parallel.offload_target=file
GPTBENCH_EMULATED_GPUS=0 run no_gpu 1 2 run.device=cuda
says no_gpu 'no GPU is visible'
run shared 2 2 run.device=cuda run.comm=nccl
says shared 'ranks share a GPU'

# A GPU a rank: NCCL is found by itself; its collectives are replayed in graphs.
export GPTBENCH_EMULATED_GPUS=4
for zero in 0 3; do
  run "nccl$zero" 2 0 run.device=cuda run.comm=auto run.cuda_graph=true "parallel.zero_stage=$zero" model.dropout=0.1
  says "nccl$zero" '; NCCL 2.'
  run "issued$zero" 2 0 run.device=cuda run.cuda_graph=false "parallel.zero_stage=$zero" model.dropout=0.1 \
    "run.algorithms=nccl$zero/result.h5"
  same_steps "nccl$zero" "issued$zero"
done
# A step that is traced is issued between replays; its operations have the GPU's times.
run traced 2 0 run.device=cuda run.comm=auto run.cuda_graph=true model.dropout=0.1 output.trace_step=3 \
  run.algorithms=nccl0/result.h5
same_steps nccl0 traced
grep -q layernorm_backward traced/trace.json || fail "traced: no operation in trace.json"
# Streams that run as late as they can are the rule; ahead of what the host waits for, and in any order:
for order in early random; do
  GPTBENCH_EMULATED_ORDER=$order run "$order" 2 0 run.device=cuda run.cuda_graph=false parallel.zero_stage=3 \
    model.dropout=0.1 run.algorithms=nccl3/result.h5
  same_steps nccl3 "$order"
done
run tensor 2 0 run.device=cuda run.cuda_graph=true parallel.tensor_parallel=2 parallel.sequence_parallel=T precision.compute=bf16
run four 4 0 run.device=cuda parallel.pipeline_parallel=2 parallel.tensor_parallel=2 parallel.pipeline_schedule=zero_bubble

# A peer that is lost, in a step that is replayed, and between pipeline stages.
GPTBENCH_EMULATED_NCCL_FAULT=error:1:12 run lost 2 6 run.device=cuda run.cuda_graph=true run.verify=F
says lost 'remote process exited'
GPTBENCH_EMULATED_NCCL_FAULT=error:0:5 run lost_stage 2 6 run.device=cuda parallel.pipeline_parallel=2 run.verify=F
says lost_stage 'remote process exited'

# A rank that is stopped, while its peer waits for it in NCCL or in MPI.
cat >faulty <<'END_OF_SCRIPT'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] || unset GPTBENCH_FAILPOINT
exec "$program" "$@"
END_OF_SCRIPT
chmod +x faulty
export program=$GPTBENCH_EMULATED
limit=6
# stopped NAME FAILPOINT KEYS...: rank 0 says that rank 1 has been stopped.
stopped() {
  GPTBENCH_EMULATED=./faulty GPTBENCH_FAILPOINT=$2/stop run "$1" 2 6 run.device=cuda run.verify=F run.watchdog_s=$limit \
    run.cuda_graph=false "${@:3}"
  says "$1" "gptbench: rank 0 on "
  says "$1" ": rank 1 on "
  says "$1" " has been stopped for more than $limit s, its last operation: '"
  says "$1" "; not reached: '"
}
stopped stopped all_reduce:4
says stopped "its last operation: 'step"
stopped stopped_before_steps autotuning
says stopped_before_steps "not reached: 'before the first step: autotuning"
stopped stopped_gather all_gather:9 parallel.zero_stage=3
stopped stopped_receive receive:5 parallel.pipeline_parallel=2
stopped stopped_checkpoint checkpoint_written:2 checkpoint.directory=stopped_checkpoint.saved checkpoint.every_steps=2
says stopped_checkpoint "not reached: 'step 4: checkpoint"
# A collective that never ends, without an error: no rank makes progress.
GPTBENCH_EMULATED_NCCL_FAULT=silent:1:12 run silent 2 6 run.device=cuda run.verify=F run.watchdog_s=$limit run.cuda_graph=false
says silent "no rank has made progress for more than $limit s; furthest behind is rank "
[ "$(grep -ac 'no rank has made progress' silent.log)" -eq 2 ] || fail "silent: not said by both ranks"

[ "$failures" -eq 0 ]
