#!/bin/bash
# The figures of a result file agree with each other (result_test.py), whatever the run did.
set -u
source "$GPTBENCH_SOURCE_DIR/test/system/outcomes.sh"
if ! command -v python3 >/dev/null; then
  echo "skipped: python3 was not found"
  exit 77
fi
fresh_folders
post=$(dirname "$GPTBENCH")/gptpost

# A machine on which some GEMMs of the tiny model wait for FLOPs, others for bytes.
sed 's/^  gemm_efficiency = [0-9.]*/  gemm_efficiency = 0.35/; s/^  attention_efficiency = [0-9.]*/  attention_efficiency = 0.1/' \
  "$GPTBENCH_SOURCE_DIR/input/machines/h100.in" >slow.in

# agrees RANKS ARGUMENTS...: a run whose result says nothing that contradicts it.
agrees() {
  local begin=$SECONDS
  run "$@" run.name=tiny output.trace_step=5
  [ "$status" -eq 0 ] || fail "status $status instead of 0"
  "$post" show --format json "$work/output/tiny/result.h5" >shown.json || fail "gptpost failed"
  for per_node in "$1" 1; do
    (cd "$work" && "$GPTBENCH" --plan --format json --ranks-per-node "$per_node" --ranks "$@") >"plan_$per_node.json" || fail "no plan"
  done
  "$post" explain --format json "$work/output/tiny/result.h5" >explained.json || fail "no account"
  "$post" explain --profile slow.in --format json "$work/output/tiny/result.h5" >profiled.json || fail "no account with a profile"
  python3 "$GPTBENCH_SOURCE_DIR/test/system/result_test.py" shown.json $((SECONDS - begin + 1)) "$work" "plan_$1.json" plan_1.json \
    explained.json "$work/output/tiny/trace.json" profiled.json slow.in "$GPTBENCH_SOURCE_DIR/input" >differ || fail "$(cat differ)"
}
deck=$decks/tiny.in
size=(model.num_layers=2 model.hidden_size=64 model.seq_length=32 batch.global_batch_size=8 run.warmup_steps=2)
evaluated=(convergence.evaluate_every=3 convergence.evaluate_batches=2)
saved=(checkpoint.directory=ck checkpoint.every_steps=3)
agrees 1 "$deck" "${size[@]}" run.steps=8 run.verify=T "${evaluated[@]}" "${saved[@]}" output.peak_tflops=0
# Host memory holds copies for checkpoints here: nothing is offloaded, and no description says so.
grep -aq 'allocated for this class' "$work/output/tiny/result.h5" || fail "no description of memory"
grep -aq 'offloaded to host memory' "$work/output/tiny/result.h5" && fail "copies for checkpoints are called offloaded"
agrees 2 "$deck" "${size[@]}" run.steps=8 parallel.zero_stage=3 "${saved[@]}" checkpoint.keep=1 checkpoint.async=F
agrees 2 "$deck" "${size[@]}" run.steps=8 parallel.pipeline_parallel=2 "${evaluated[@]}" optimizer.lr=1e-2 convergence.target_loss=3.3
agrees 2 "$deck" "${size[@]}" run.steps=8 parallel.tensor_parallel=2 memory.activation_checkpointing=full output.flops_convention=megatron \
  memory.device_memory_gib=1
agrees 2 "$deck" "${size[@]}" run.steps=8 parallel.zero_stage=3 parallel.offload=parameters
agrees 2 "$deck" "${size[@]}" run.steps=8 model.family=bert data.short_seq_prob=0.5
agrees 2 "$deck" "${size[@]}" run.steps=20 parallel.zero_stage=2 precision.compute=fp16 precision.initial_loss_scale=1e7 \
  precision.loss_scale_window=2 "${evaluated[@]}"

echo "$failures failures"
exit $((failures > 0))
