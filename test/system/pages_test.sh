#!/bin/bash
# Pages of the program that no machine changes, plans, projections, searches and lists, as wholes
# beside those kept in test/system/pages. To write them anew after a change that is meant, and look at
# them: GPTBENCH_UPDATE=1 ctest -R system_pages.
#
# Needs GPTBENCH, GPTPOST, GPTBENCH_SOURCE_DIR.
set -u
pages=$GPTBENCH_SOURCE_DIR/test/system/pages
export OMP_NUM_THREADS=1
unset GPTBENCH_DEVICES
failures=0
made=$PWD/pages
mkdir -p "$made"
cd "$GPTBENCH_SOURCE_DIR" || exit 1

# page NAME ARGUMENTS ...: what the program prints, with its exit status as the last line. Figures of JSON
# have all their digits; six behind the point are kept.
page() {
  local name=$1
  shift
  {
    "$GPTBENCH" "$@" 2>&1
    echo "exit status $?"
  } >"$made/$name"
  if [[ $name == *.json ]]; then shorten "$made/$name"; fi
  compare "$name" "gptbench $*"
}
shorten() { sed -E -i 's/(\.[0-9]{6})[0-9]+/\1/g' "$1"; }

# compare NAME WHAT: $made/NAME with the page that is kept.
compare() {
  local name=$1
  if [ -n "${GPTBENCH_UPDATE:-}" ]; then cp "$made/$name" "$pages/$name"; fi
  if ! diff "$pages/$name" "$made/$name" >"$made/diff"; then
    echo "FAILED: $2: not as in test/system/pages/$name (GPTBENCH_UPDATE=1 keeps it)"
    head -n 20 "$made/diff"
    failures=$((failures + 1))
  fi
}

short=input/124m_short.in
limit=(run.device=host memory.device_memory_gib=40)
small=(model.num_layers=1 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=32
  model.vocab_size=96 model.vocab_multiple=1 batch.global_batch_size=8)

# Plans: layouts in which every axis and every term of memory and messages shows.
page plan_tensor.txt --plan $short --ranks 4 parallel.tensor_parallel=2 "${limit[@]}"
page plan_pipeline.txt --plan $short --ranks 8 --ranks-per-node 4 parallel.pipeline_parallel=4 \
  parallel.virtual_stages=3 parallel.pipeline_schedule=interleaved batch.global_batch_size=16 "${limit[@]}"
page plan_zero3.txt --plan $short --ranks 16 --ranks-per-node 4 parallel.zero_stage=3 parallel.context_parallel=2 \
  precision.compute=bf16 memory.activation_checkpointing=full parallel.offload=optimizer batch.global_batch_size=16 "${limit[@]}"
page plan_zero_bubble.txt --plan $short --ranks 4 parallel.pipeline_parallel=4 \
  parallel.pipeline_schedule=zero_bubble run.deterministic=.false. batch.global_batch_size=16 "${limit[@]}"
page plan_too_large.txt --plan $short --ranks 1 run.device=host memory.device_memory_gib=1
page plan.json --plan $short --ranks 4 parallel.tensor_parallel=2 "${limit[@]}" --format json
page plan_mpt.txt --plan input/mpt/mpt-7b-2048-64x312-40gib-mbs18.in run.device=host
for family in gpt llama bert; do
  page operations_$family.txt --plan $short --ranks 2 --operations "${small[@]}" model.preset= model.family=$family \
    parallel.tensor_parallel=2 "${limit[@]}"
done
page operations_fp8.txt --plan $short --ranks 2 --operations "${small[@]}" precision.compute=fp8 \
  parallel.zero_stage=3 memory.activation_checkpointing=selective "${limit[@]}"

# Projections.
page project_fsdp.txt --project input/mpt/mpt-7b-2048-64x312-40gib-mbs18.in --machine a100-40 --software fsdp --ranks 64
page project_fugaku.txt --project input/fugaku/fugaku-1024-full-1-tp1-mbs1-6.144-row5.in \
  --machine a64fx-2.0 --software megatron-a64fx --ranks 512 --tokens 3e11 parallel.data_parallel=0 batch.global_batch_size=512
page project_other_peak.txt --project input/mpt/mpt-7b-2048-64x312-40gib-mbs18.in --machine h100 --software fsdp --ranks 64
page search.txt --search $short --machine h100 --software gptbench --ranks 8 --top 3 batch.global_batch_size=16 \
  output.peak_tflops=100

page project_offload.json --project $short --machine h100 --software gptbench --ranks 16 parallel.offload=optimizer \
  parallel.zero_stage=2 batch.global_batch_size=16 --tokens 1e9 --format json --write-result "$made/projected"
page search.json --search $short --machine a100-80 --software megatron --ranks 8 --top 2 batch.global_batch_size=16 \
  --format json
# What a projected result holds, without dates, versions, decks and the list of buffers.
"$GPTPOST" show --format json "$made/projected/result.h5" | python3 -c '
import json, sys
record = json.load(sys.stdin)
for key in ("file", "date_utc", "git_commit", "software_version", "config", "provenance"):
    del record[key]
del record["memory"]["arena"]
print(json.dumps(record, indent=1))' >"$made/projected.json"
shorten "$made/projected.json"
compare projected.json "gptpost show of a projection"

# Lists.
page list_fugaku.txt --sweep input/fugaku/sweep.in --list
page list_zero.json --sweep input/zero/sweep_short.in --list --format json
page devices.txt --devices
page keys_gather.txt --keys gather
page check.txt --check $short parallel.tensor_parallel=2

if [ "$failures" -gt 0 ]; then
  echo "$failures failures"
  exit 1
fi
echo "all as kept"
