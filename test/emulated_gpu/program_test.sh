#!/bin/bash
# gptbench on emulated GPUs: what check.sh (check_test.sh) does not see on a machine with one.
set -u

source "$GPTBENCH_SOURCE_DIR/test/emulated_gpu/small_runs.sh"

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
GPTBENCH_EMULATED_GPU_MIB=256 run calibrated_tf32 1 0 --calibrate run.device=cuda precision.tf32=true run.time_limit_s=1
grep -rq '^  linear_forward_tf32 =' calibrated_tf32 || fail "GEMMs in tf32 have another name"

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
# Messages of a calibration go ways that no step takes: between neighbours there and back on one communicator.
run calibrated_stages 2 0 --calibrate run.device=cuda run.comm=nccl parallel.pipeline_parallel=2 run.time_limit_s=1
says calibrated_stages 'messages along axis pipeline, 2 ranks'
says calibrated_stages 'GPTBENCH calibration status=OK verdict=VALID '
# A step that is traced is issued between replays; its operations have the GPU's times.
run traced 2 0 run.device=cuda run.comm=auto run.cuda_graph=true model.dropout=0.1 output.trace_step=3 \
  run.algorithms=nccl0/result.h5
same_steps nccl0 traced
grep -q layernorm_backward traced/trace.json || fail "traced: no operation in trace.json"
# The rate of a warm-up, and the weight decay by it, are no part of what was recorded.
warm_up=(convergence.lr_warmup_steps=3 optimizer.weight_decay=0.5 optimizer.lr=0.01)
for graph in true false; do
  run "rate_$graph" 1 0 run.device=cuda "run.cuda_graph=$graph" "${warm_up[@]}" run.algorithms=nccl0/result.h5
done
same_steps rate_true rate_false
# Streams that run as late as they can are the rule; ahead of what the host waits for, and in any order:
for order in early random; do
  GPTBENCH_EMULATED_ORDER=$order run "$order" 2 0 run.device=cuda run.cuda_graph=false parallel.zero_stage=3 \
    model.dropout=0.1 run.algorithms=nccl3/result.h5
  same_steps nccl3 "$order"
done
run tensor 2 0 run.device=cuda run.cuda_graph=true parallel.tensor_parallel=2 parallel.sequence_parallel=T precision.compute=bf16

# Every queue of a step has a connection of its own: with the driver's eight these stages would wait for each other.
# Nor do ranks where a kernel is loaded when all messages have ended (GPTBENCH_EMULATED_LOADING_WAITS).
unset CUDA_DEVICE_MAX_CONNECTIONS
export GPTBENCH_EMULATED_LOADING_WAITS=1
sequences=16 run stages 2 0 run.device=cuda parallel.pipeline_parallel=2 parallel.pipeline_schedule=gpipe run.watchdog_s=60
grep -aq 'CUDA_DEVICE_MAX_CONNECTIONS=32' stages/result.h5 || fail "stages: the record does not have the connections"
CUDA_DEVICE_MAX_CONNECTIONS=8 run few 2 2 run.device=cuda parallel.pipeline_parallel=2
says few 'unset it, or set 11 to 32'
run four 4 0 run.device=cuda parallel.pipeline_parallel=2 parallel.tensor_parallel=2 parallel.pipeline_schedule=zero_bubble
unset GPTBENCH_EMULATED_LOADING_WAITS

# A peer that is lost, in a step that is replayed, and between pipeline stages.
GPTBENCH_EMULATED_NCCL_FAULT=error:1:12 run lost 2 6 run.device=cuda run.cuda_graph=true run.verify=F
says lost 'remote process exited'
GPTBENCH_EMULATED_NCCL_FAULT=error:0:5 run lost_stage 2 6 run.device=cuda parallel.pipeline_parallel=2 run.verify=F
says lost_stage 'remote process exited'

[ "$failures" -eq 0 ]
